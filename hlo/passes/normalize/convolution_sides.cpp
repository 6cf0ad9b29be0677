#include "hlo/passes/normalize/convolution_sides.h"

#include <algorithm>

#include "hlo/passes/normalize/layouts.h"
#include "hlo/passes/precision.h"

namespace tenon::hlo {
namespace {

bool are_all(const I64s& numbers, int64_t number) {
  return std::ranges::all_of(numbers, [&](int64_t each) { return each == number; });
}

ConvDims exchanged(const ConvDims& dims) {
  return {.input_batch = dims.kernel_output_feature,
          .input_feature = dims.kernel_input_feature,
          .input_spatial = dims.kernel_spatial,
          .kernel_input_feature = dims.input_feature,
          .kernel_output_feature = dims.input_batch,
          .kernel_spatial = dims.input_spatial,
          .output_batch = dims.output_feature,
          .output_feature = dims.output_batch,
          .output_spatial = dims.output_spatial};
}

}  // namespace

Value exchange_sides(Instruction& op) {
  const auto& dims = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  const size_t spatial = dims.input_spatial.size();
  const I64s gaps = op.i64s_or(AttrKey::lhs_dilation, spatial, 1);
  const auto* const reversed = op.attr<BoolsAttr>(AttrKey::window_reversal);
  const bool is_reversed =
      reversed != nullptr &&
      std::ranges::any_of(reversed->values, [](uint8_t each) { return each != 0; });
  if (are_all(gaps, 1) || is_reversed ||
      !are_all(op.i64s_or(AttrKey::window_strides, spatial, 1), 1) ||
      !are_all(op.i64s_or(AttrKey::rhs_dilation, spatial, 1), 1)) {
    return {};
  }
  const Type &input = op.operand_type(0), &filter = op.operand_type(1), &result = op.result_type();
  // A transposed convolution of a small input has more places than its filter.
  const auto places_of = [](const Type& type, const I64s& of) {
    return element_count(in_order(type.dims(), of));
  };
  const int64_t window = places_of(filter, dims.kernel_spatial);
  if (window <= places_of(input, dims.input_spatial) ||
      window < places_of(result, dims.output_spatial) || element_count(result.dims()) == 0 ||
      element_count(input.dims()) == 0) {
    return {};
  }
  // Place k of the result sums what is at q of the input and at gap * q + low - k of the filter.
  const I64Matrix padding = op.padding_or_zero(spatial);
  I64Matrix to = {static_cast<int64_t>(spatial), 2, {}};
  for (size_t s = 0; s < spatial; ++s) {
    const auto size = [&](const Type& type, const I64s& of) {
      return type.dims()[static_cast<size_t>(of[s])];
    };
    const int64_t places = size(result, dims.output_spatial);
    const int64_t low = places - 1 - padding.at(static_cast<int64_t>(s), 0);
    to.values.push_back(low);
    to.values.push_back(places + (size(input, dims.input_spatial) - 1) * gaps[s] - low -
                        size(filter, dims.kernel_spatial));
  }
  Builder b(*op.parent(), &op);
  b.set_location(op.location());
  auto made = std::make_unique<Instruction>(
      OpCode::kConvolution, std::vector<Value>{op.operand(1), op.operand(0)}, op.result_types());
  Attributes& attributes = made->mutable_attributes();
  attributes = op.attributes();
  attributes.set(AttrKey::dimension_numbers, exchanged(dims));
  attributes.set(AttrKey::padding, std::move(to));
  attributes.set(AttrKey::rhs_dilation, gaps);
  attributes.erase(AttrKey::lhs_dilation);
  exchange_precisions(*made);
  made->set_location(op.location());
  const Value backwards = op.parent()->insert(std::move(made), &op)->result();
  return b.make(OpCode::kReverse, {backwards}, {{AttrKey::dimensions, dims.output_spatial}});
}

}  // namespace tenon::hlo
