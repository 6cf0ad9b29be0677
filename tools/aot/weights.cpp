#include "tools/aot/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "hlo/builder/builder.h"
#include "hlo/ir/inline.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/pass.h"

namespace tenon::tools {
namespace {

using hlo::Builder;
using hlo::DotDims;
using hlo::Instruction;
using hlo::OpCode;
using hlo::Use;

// Numbers as they are stored. Integers have a factor for each index of the dimension `axis`.
struct Stored {
  Literal numbers;
  int64_t axis = -1;
  Literal scales = Literal::scalar(ElementType::kF32, 1);
};

Stored rounded(const Literal& wide, ElementType type) {
  Stored stored = {Literal(Shape(type, wide.shape().dims()))};
  for (int64_t i = 0; i < wide.element_count(); ++i) {
    stored.numbers.set_double(i, wide.get_double(i));
  }
  return stored;
}

// Symmetric integers in [-127, 127], as large as each index of `axis` allows; nothing for
// infinities and NaN.
std::optional<Stored> quantized(const Literal& wide, int64_t axis) {
  const Shape& shape = wide.shape();
  const int64_t size = shape.dim(static_cast<size_t>(axis));
  const int64_t stride = row_major_strides(shape.dims())[static_cast<size_t>(axis)];
  std::vector<double> largest(static_cast<size_t>(size));
  for (int64_t i = 0; i < wide.element_count(); ++i) {
    double& most = largest[static_cast<size_t>(i / stride % size)];
    const double x = std::abs(wide.get_double(i));
    if (!std::isfinite(x)) return std::nullopt;
    most = std::max(most, x);
  }
  Stored stored = {Literal(Shape(ElementType::kS8, shape.dims())), axis,
                   Literal(Shape(ElementType::kF32, {size}))};
  for (int64_t i = 0; i < size; ++i) {
    const double most = largest[static_cast<size_t>(i)];
    stored.scales.set_double(i, most / 127);
    // Denormal numbers have a scale that is rounded to zero.
    if (stored.scales.get_double(i) == 0) stored.scales.set_double(i, 1);
  }
  for (int64_t i = 0; i < wide.element_count(); ++i) {
    const double scale = stored.scales.get_double(i / stride % size);
    // The scale is rounded to f32: the quotient may exceed 127 by a little.
    stored.numbers.set_integer(i, std::lround(std::clamp(wide.get_double(i) / scale, -127., 127.)));
  }
  return stored;
}

bool is_product(const Use& use) { return use.user->code() == OpCode::kDotGeneral; }

bool is_of_products(const Instruction& constant) {
  return std::ranges::all_of(constant.uses(), is_product);
}

void find_constants(hlo::Computation& computation, std::vector<Instruction*>& found) {
  for (Instruction& op : computation) {
    for (size_t i = 0; i < op.region_count(); ++i) find_constants(op.region(i), found);
    if (op.code() != OpCode::kConstant || !hlo::is_plain(op.result_type())) continue;
    const Shape& shape = op.result_type().shape();
    const bool is_large =
        shape.element_type() == ElementType::kF32 &&
        element_count(shape.dims()) >= (is_of_products(op) ? kLeastNarrowed : kLeastConverted);
    // A splat becomes no array.
    if (is_large && hlo::splat_of(op.result(0)) == nullptr) found.push_back(&op);
  }
}

// The dimension of a product's result that the dimension `axis` of an operand becomes, or nothing
// if it is contracted or of a batch.
std::optional<int64_t> result_dimension(const Instruction& product, size_t operand, int64_t axis) {
  const DotDims& dims = *product.attr<DotDims>(hlo::AttrKey::dot_dimension_numbers);
  const auto is_used = [&](size_t of, int64_t d) {
    return contains(of == 0 ? dims.lhs_batching : dims.rhs_batching, d) ||
           contains(of == 0 ? dims.lhs_contracting : dims.rhs_contracting, d);
  };
  if (is_used(operand, axis)) return std::nullopt;
  auto place = static_cast<int64_t>(dims.lhs_batching.size());
  for (size_t of = 0; of <= operand; ++of) {
    const int64_t end = of == operand ? axis : product.operand_type(of).rank();
    for (int64_t d = 0; d < end; ++d) place += is_used(of, d) ? 0 : 1;
  }
  return place;
}

// The dimension of a constant with a scale for each index: that of the results of a product, of the
// output features of a convolution, else the first.
int64_t scaled_dimension(const Instruction& constant) {
  const Use& use = constant.uses().front();
  if (use.user->code() == OpCode::kConvolution && use.operand == 1) {
    return use.user->attr<hlo::ConvDims>(hlo::AttrKey::dimension_numbers)->kernel_output_feature;
  }
  if (!is_product(use)) return 0;
  int64_t best = 0;
  int64_t most = -1;
  for (int64_t d = 0; d < constant.result_type().rank(); ++d) {
    const int64_t size = constant.result_type().shape().dim(static_cast<size_t>(d));
    if (size <= most || !result_dimension(*use.user, use.operand, d)) continue;
    best = d;
    most = size;
  }
  return best;
}

// Makes the product read the narrow numbers, and multiplies its results by the scales.
Status narrow_product(const Use& use, const Stored& stored, hlo::Value numbers) {
  Instruction& product = *use.user;
  if (stored.axis < 0) {
    product.set_operand(use.operand, numbers);
    return {};
  }
  const std::vector<Use> readers = product.uses();
  const int64_t dimension = *result_dimension(product, use.operand, stored.axis);
  product.set_operand(use.operand, numbers);
  Builder builder(*product.parent(), product.next());
  builder.set_location(product.location());
  const hlo::Value scales = builder.broadcast_in_dim(
      builder.constant(stored.scales), product.result_type().shape().dims(), {dimension});
  const hlo::Value scaled = builder.mul(product.result(0), scales);
  if (!builder.ok()) return builder.status();
  for (const Use& reader : readers) reader.user->set_operand(reader.operand, scaled);
  return {};
}

bool is_direct(const Use& use, const Stored& stored) {
  if (!is_product(use)) return false;
  if (stored.axis < 0) return true;
  const Instruction& product = *use.user;
  const bool is_f32 = product.result_type().element_type() == ElementType::kF32 &&
                      product.operand_type(1 - use.operand).element_type() == ElementType::kF32;
  return is_f32 && product.operand(0) != product.operand(1) &&
         result_dimension(product, use.operand, stored.axis).has_value();
}

Status narrow(Instruction& op, ElementType type) {
  const Literal wide = hlo::constant_of(op.result(0))->expanded();
  const std::optional<Stored> stored = is_integer(type)
                                           ? quantized(wide, scaled_dimension(op))
                                           : std::optional<Stored>(rounded(wide, type));
  if (!stored) return {};
  Builder builder(*op.parent(), op.next());
  builder.set_location(op.location());
  const hlo::Value numbers = builder.constant(stored->numbers);
  hlo::Value expanded;
  const std::vector<Use> uses = op.uses();
  for (const Use& use : uses) {
    if (is_direct(use, *stored)) {
      TENON_TRY(narrow_product(use, *stored, numbers));
      continue;
    }
    if (expanded.def == nullptr) {
      expanded = builder.convert(numbers, ElementType::kF32);
      if (stored->axis >= 0) {
        const hlo::Value scales = builder.broadcast_in_dim(builder.constant(stored->scales),
                                                           wide.shape().dims(), {stored->axis});
        expanded = builder.mul(expanded, scales);
      }
    }
    if (!builder.ok()) return builder.status();
    use.user->set_operand(use.operand, expanded);
  }
  return builder.status();
}

}  // namespace

Status narrow_weights(hlo::Module& module, const std::string& entry, ElementType type) {
  TENON_TRY(hlo::select_entry(module, entry));
  constexpr std::array<std::string_view, 3> kPasses = {"inline-calls", "decompose", "simplify"};
  TENON_TRY(hlo::run_passes(module, kPasses));
  std::vector<Instruction*> constants;
  for (const auto& function : module.functions()) find_constants(*function, constants);
  for (Instruction* const each : constants) TENON_TRY(narrow(*each, type));
  return {};
}

}  // namespace tenon::tools
