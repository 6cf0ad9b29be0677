#include "hlo/decomposition/needs_decomposition.h"

#include <algorithm>

#include "hlo/decomposition/linalg/custom_calls.h"
#include "hlo/ir/fft_lengths.h"
#include "hlo/ops/ops.h"

namespace tenon::hlo::decomposition {

namespace {

// Whether a scatter computes in other types than those of its inputs and updates.
bool promotes(const Instruction& op) {
  const size_t n = op.result_count();
  for (uint32_t k = 0; k < n; ++k) {
    const ElementType type = op.result_type(k).element_type();
    if (op.operand_type(k).element_type() != type ||
        op.operand_type(n + 1 + k).element_type() != type) {
      return true;
    }
  }
  return false;
}

// The scatter with its inputs and updates converted to the types of its body.
Values promoted_scatter(Builder& b, const Instruction& op) {
  const size_t n = op.result_count();
  Cloner cloner;
  std::unique_ptr<Instruction> copy = cloner.clone(op);
  for (uint32_t k = 0; k < n; ++k) {
    const ElementType type = op.result_type(k).element_type();
    for (const size_t i : {size_t{k}, n + 1 + k}) {
      copy->set_operand(i, b.convert(op.operand(i), type));
    }
  }
  if (!b.ok()) return Error(b.status());
  Instruction* const scatter = b.create(std::move(copy));
  if (scatter == nullptr) return Error(b.status());
  std::vector<Value> results;
  for (uint32_t k = 0; k < n; ++k) results.push_back(scatter->result(k));
  return results;
}

// The maximum number of operands of a concatenate in one kernel, which tests the operands one after
// the other for each element.
constexpr size_t kMostConcatenated = 64;

// Concatenates groups of operands first, then the groups.
Values concatenation_tree(Builder& b, const Instruction& op) {
  const int64_t dimension = op.integer(AttrKey::dimension);
  std::vector<Value> parts = op.operands();
  while (parts.size() > kMostConcatenated) {
    std::vector<Value> joined;
    for (size_t i = 0; i < parts.size(); i += kMostConcatenated) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(i);
      const size_t count = std::min(kMostConcatenated, parts.size() - i);
      joined.push_back(
          b.concatenate({begin, begin + static_cast<std::ptrdiff_t>(count)}, dimension));
    }
    parts = std::move(joined);
  }
  const Value whole = b.concatenate(parts, dimension);
  if (!b.ok()) return Error(b.status());
  return std::vector<Value>{whole};
}

}  // namespace

bool needs_decomposition(const Instruction& op) {
  if (linalg_call(op) != nullptr) return true;
  if (touches_quantized(op)) {
    if (op.info().category == Category::kControl) return false;
    return !works_on_storage(op) || op.info().is_decomposable();
  }
  if (op.code() == OpCode::kScatter) return promotes(op);
  if (op.code() == OpCode::kConcatenate) return op.operand_count() > kMostConcatenated;
  if (op.code() == OpCode::kFft) {
    const I64s& length = op.i64s(AttrKey::fft_length);
    return !std::ranges::all_of(length, is_direct_fft_length);
  }
  return op.info().is_decomposable() || is_large_complex_product(op);
}

std::optional<OpCode> function_of_composite(const Instruction& op) {
  if (op.code() != OpCode::kComposite || op.operand_count() == 0 || op.result_count() != 1)
    return {};
  const auto code = op_from_name(op.text(AttrKey::name));
  if (!code) return {};
  if (*code == OpCode::kChloRaggedDot) return ragged_dot_of(op) ? code : std::nullopt;
  const OpInfo& info = op_info(*code);
  const bool is_function = info.dialect() == "chlo" && info.ulp_bound > 0 &&
                           info.operand_names().size() == op.operand_count();
  const Type& type = op.result_type();
  if (!is_function || !type.is_tensor() || !type.shape().is_static()) return {};
  const ElementType element = type.element_type();
  const uint8_t types = is_complex(element) ? kTypesComplex : is_float(element) ? kTypesFloat : 0;
  if ((info.types & types) == 0 || touches_quantized(op)) return {};
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand_type(i) != type) return {};
  }
  if (op.attribute(AttrKey::composite_attributes) != nullptr) return {};
  return code;
}

Values decompose(Builder& b, const Instruction& op) {
  if (const auto function = function_of_composite(op)) {
    Instruction* const made = *function == OpCode::kChloRaggedDot
                                  ? b.create(ragged_dot_of(op))
                                  : b.create(*function, op.operands());
    if (made == nullptr) return Error(b.status());
    return std::vector<Value>{made->result()};
  }
  if (linalg_call(op) != nullptr) return expand_linalg_call(b, op);
  if (touches_quantized(op)) return quantized(b, op);
  if (op.code() == OpCode::kScatter) return promoted_scatter(b, op);
  if (op.code() == OpCode::kConcatenate) return concatenation_tree(b, op);
  if (is_large_complex_product(op)) return complex_product(b, op);
  if (!op.info().is_decomposable()) return internal_error("{} has no decomposition", op.name());
  return op.info().decompose(b, op);
}

}  // namespace tenon::hlo::decomposition
