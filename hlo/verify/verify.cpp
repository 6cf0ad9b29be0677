#include "hlo/verify/verify.h"

#include <algorithm>

#include "core/types/float_convert.h"
#include "hlo/inference/infer_util.h"
#include "hlo/ops/attribute_kinds.h"

namespace tenon::hlo {
namespace infer {
namespace {

std::string quantization_fault(const Type& type) {
  const QuantizedType& q = *type.quantized();
  if (!is_integer(q.storage)) return "the storage type is not an integer type";
  if (q.storage != type.element_type()) return "the storage type is not that of its elements";
  if (!is_float(q.expressed)) return "the expressed type is not a float type";
  if (element_type_info(q.expressed).format.specials == FloatSpecials::kExponentOnly) {
    return "the expressed type has no zero and no negative numbers";
  }
  if (q.storage_min >= q.storage_max || q.storage_min < integer_min(q.storage) ||
      q.storage_max > integer_max(q.storage)) {
    return "the storage range does not lie in the storage type";
  }
  if (q.axis < -1 || q.axis >= type.rank()) return "the quantized dimension does not exist";
  if (q.scales.size() != q.zero_points.size()) return "scales and zero points differ in number";
  const int64_t count = q.is_per_axis() ? type.dims()[at(q.axis)] : 1;
  if (!same_size(count, length(q.scales))) {
    return fmt::format("there are {} scales, expected {}", q.scales.size(), count);
  }
  for (double scale : q.scales) {
    // The least scale is the least denormal of the expressed type.
    if (!(scale >= decode_float(q.expressed, 1)) || !(scale <= float_max(q.expressed))) {
      return fmt::format("the scale {} is not a positive number of the expressed type", scale);
    }
  }
  for (int64_t zero : q.zero_points) {
    if (zero < q.storage_min || zero > q.storage_max) return "a zero point is out of range";
  }
  return {};
}

}  // namespace

std::string type_fault(const Type& type) {
  if (!type.is_tensor() && type.kind() != TypeKind::kBuffer) {
    for (const Type& element : type.elements()) {
      if (type.kind() == TypeKind::kFuture && !element.is_tensor()) {
        return "a future holds something other than tensors";
      }
      if (std::string fault = type_fault(element); !fault.empty()) return fault;
    }
    return {};
  }
  for (int64_t dim : type.dims()) {
    if (dim < 0 && dim != kDynamic) return fmt::format("the size {} is negative", dim);
  }
  if (type.shape().is_static()) {
    const auto unit = static_cast<int64_t>(storage_bytes(type.element_type()));
    const Result<int64_t> count = checked_element_count(type.dims(), unit);
    if (!count) return count.error().message();
  }
  const Dims& bounds = type.shape().bounds();
  if (!bounds.empty() && bounds.size() != type.dims().size()) return "bounds and rank differ";
  for (int64_t bound : bounds) {
    if (bound < 0 && bound != kDynamic) return fmt::format("the bound {} is negative", bound);
  }
  return type.is_quantized() ? quantization_fault(type) : std::string();
}

}  // namespace infer

namespace {

using infer::rule_error;
using infer::type_fault;

constexpr std::pair<TypeSet, std::string_view> kTypeSetNames[] = {
    {kTypesPred, "pred"},       {kTypesInt, "integers"},        {kTypesFloat, "floats"},
    {kTypesComplex, "complex"}, {kTypesQuantized, "quantized"}, {kTypesToken, "token"},
};

std::string type_set_to_string(uint8_t types) {
  std::string text;
  for (const auto& [bit, name] : kTypeSetNames) {
    if ((types & bit) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text;
}

// Control flow carries anything.
bool takes_per_axis(const OpInfo& info) {
  return info.takes_per_axis || (info.types & kTypesToken) != 0;
}

Status check_type(const Instruction& op, std::string_view role, size_t index, const Type& type) {
  // A malformed type may not be printable: printing could index beyond the end of its lists.
  if (const std::string fault = type_fault(type); !fault.empty()) {
    return rule_error(op, "", "type of {} {} is malformed: {}", role, index, fault);
  }
  // Tuples, futures and buffers are allowed where tokens are.
  const uint8_t types = op.info().types;
  const uint8_t element = type.is_tensor() ? infer::type_class(type) : uint8_t{kTypesToken};
  if ((types & element) == 0) {
    return rule_error(op, "", "{} {} is {}, expected {}", role, index, type.to_string(),
                      type_set_to_string(types));
  }
  if (infer::is_per_axis(type) && !takes_per_axis(op.info())) {
    return rule_error(op, "", "{} {} is {}, expected one scale for the whole tensor", role, index,
                      type.to_string());
  }
  return {};
}

// ---- Counts -------------------------------------------------------------------------------------

Status check_count(const Instruction& op, std::string_view what,
                   std::span<const std::string_view> names, size_t found) {
  const auto is_list = [](std::string_view name) { return name.ends_with('*'); };
  const auto lists = static_cast<size_t>(std::count_if(names.begin(), names.end(), is_list));
  const size_t fixed = names.size() - lists;
  if (lists == 0 ? found == fixed : found >= fixed) return {};
  return rule_error(op, "", "has {} {}, expected {}{}", found, what, lists == 0 ? "" : "at least ",
                    fixed);
}

Status check_values(const Instruction& op) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Value value = op.operand(i);
    if (!value) return rule_error(op, "", "operand {} is null", i);
    if (value.index >= value.def->result_count()) {
      return rule_error(op, "", "operand {} is result {} of {}, which has {}", i, value.index,
                        value.def->name(), value.def->result_count());
    }
  }
  return {};
}

// ---- Attributes ---------------------------------------------------------------------------------

Status check_attributes(const Instruction& op) {
  for (const AttrSpec& spec : op.info().attribute_specs()) {
    const Attribute* value = op.attribute(spec.key);
    const std::string_view name = attr_key_name(spec.key);
    if (value == nullptr) {
      if (spec.default_value != AttrDefault::kRequired) continue;
      return rule_error(op, "", "attribute {} is missing", name);
    }
    if (!attr_kind_info(spec.kind).holds(spec, *value)) {
      return rule_error(op, "", "attribute {} has the wrong form", name);
    }
  }
  for (const auto& [key, value] : op.attributes()) {
    if (op.info().find_attribute(key) == nullptr) {
      return rule_error(op, "", "attribute {} is not declared for this op", attr_key_name(key));
    }
  }
  return {};
}

// ---- Results ------------------------------------------------------------------------------------

bool same_element(const Type& a, const Type& b) {
  return a.is_tensor() && b.is_tensor() && infer::identical_element(a, b);
}

Status verify_results(const Instruction& op) {
  TENON_ASSIGN(const std::vector<Type> types, infer_types(op));
  if (types.size() != op.result_count()) {
    return rule_error(op, "", "has {} results, expected {}", op.result_count(), types.size());
  }
  const infer::ResultClause clause = infer::result_clause(op);
  for (size_t i = 0; i < types.size(); ++i) {
    const Type& stated = op.result_type(i);
    if (compatible(types[i], stated)) continue;
    const std::string_view label =
        same_element(types[i], stated) ? clause.shape_of(i) : clause.element;
    if (types.size() == 1) {
      return rule_error(op, label, "result type is {}, expected {}", stated.to_string(),
                        types[i].to_string());
    }
    return rule_error(op, label, "type of result {} is {}, expected {}", i, stated.to_string(),
                      types[i].to_string());
  }
  return {};
}

}  // namespace

Status verify_structure(const Instruction& op) {
  const OpInfo& info = op.info();
  TENON_TRY(check_count(op, "operands", info.operand_names(), op.operand_count()));
  TENON_TRY(check_values(op));
  TENON_TRY(check_count(op, "regions", info.region_names(), op.region_count()));
  for (size_t i = 0; i < op.operand_count(); ++i) {
    TENON_TRY(check_type(op, "operand", i, op.operand_type(i)));
  }
  // Instructions of the builder have no result types yet; the rule infers them.
  if (op.result_count() != 0) {
    TENON_TRY(check_count(op, "results", info.result_names(), op.result_count()));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    TENON_TRY(check_type(op, "result", i, op.result_type(i)));
  }
  TENON_TRY(check_attributes(op));
  // Rules read the parameter and return types of regions.
  for (size_t i = 0; i < op.region_count(); ++i) {
    const Computation& region = op.region(i);
    for (size_t p = 0; p < region.parameter_count(); ++p) {
      const Instruction& parameter = region.parameter_instruction(p);
      const bool is_sound =
          parameter.result_count() == 1 && type_fault(parameter.result_type()).empty();
      if (!is_sound) {
        return rule_error(op, "", "type of parameter {} of region {} is malformed", p, i);
      }
    }
    if (const Instruction* end = region.return_instruction()) {
      TENON_TRY(check_values(*end));
      for (size_t r = 0; r < end->operand_count(); ++r) {
        if (const std::string fault = type_fault(end->operand_type(r)); !fault.empty()) {
          return rule_error(op, "", "type of result {} of region {} is malformed: {}", r, i, fault);
        }
        TENON_TRY(check_type(*end, "operand", r, end->operand_type(r)));
      }
    }
  }
  return {};
}

Result<std::vector<Type>> infer_types(const Instruction& op) {
  TENON_TRY(verify_structure(op));
  TENON_ASSIGN(std::vector<Type> types, op.info().infer(op));
  // Stated scales may not fit the dimensions that the rule infers.
  for (size_t i = 0; i < types.size(); ++i) {
    if (const std::string fault = type_fault(types[i]); !fault.empty()) {
      return rule_error(op, "", "type of result {} is malformed: {}", i, fault);
    }
  }
  return types;
}

Status verify(const Instruction& op) {
  Status status = verify_results(op);
  if (status.ok()) return status;
  return std::move(status).in_stage("verify");
}

namespace {

// The rank of the window of an op that has one.
std::optional<size_t> window_rank(const Instruction& op) {
  if (const auto* dims = op.attr<ConvDims>(AttrKey::dimension_numbers)) {
    return dims->input_spatial.size();
  }
  const auto* sizes = op.attr<I64s>(AttrKey::window_dimensions);
  return sizes != nullptr ? std::optional(sizes->size()) : std::nullopt;
}

// Whether a list has as many numbers as its default. A list of another length is wrong rather than
// the default, and shape inference reports it.
bool has_length(const AttrSpec& spec, const Attribute& value, std::optional<size_t> rank) {
  if (spec.key == AttrKey::precision_config) {
    const auto* precisions = value.get<ArrayAttr>();
    return precisions == nullptr || precisions->size() <= 2;
  }
  if (!rank) return true;
  if (const auto* flags = value.get<BoolsAttr>()) return flags->values.size() == *rank;
  if (const auto* matrix = value.get<I64Matrix>()) {
    return matrix->rows == static_cast<int64_t>(*rank) && (matrix->columns == 2 || *rank == 0);
  }
  const auto* list = value.get<I64s>();
  return list == nullptr || list->size() == *rank;
}

}  // namespace

void canonicalize_attributes(Instruction& op) {
  const std::optional<size_t> rank = window_rank(op);
  for (const AttrSpec& spec : op.info().attribute_specs()) {
    const Attribute* value = op.attribute(spec.key);
    if (value == nullptr || !is_default(spec, *value)) continue;
    if (has_length(spec, *value, rank)) op.mutable_attributes().erase(spec.key);
  }
}

}  // namespace tenon::hlo
