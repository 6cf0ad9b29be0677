// Rules of convolution and dynamic_conv, whose constraints have the same labels.
#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

I64s all_dimensions(int64_t a, int64_t b, const I64s& spatial) {
  I64s all = spatial;
  all.push_back(a);
  all.push_back(b);
  return all;
}

// One of the three lists of dimension numbers: its length is the rank, each is in range, none is
// repeated.
Status check_numbers(const Instruction& op, std::string_view size_label, std::string_view label,
                     std::string_view name, const I64s& spatial, const I64s& all, int64_t rank) {
  TENON_TRY(check_length(op, size_label, fmt::format("{}_spatial_dimensions", name),
                         length(spatial), rank - 2));
  const std::string dimensions = fmt::format("{} dimensions", name);
  TENON_TRY(check_range(op, label, dimensions, all, rank));
  return check_unique(op, label, dimensions, all);
}

Status check_multiple(const Instruction& op, std::string_view label, std::string_view name,
                      int64_t size, std::string_view divisor_name, int64_t divisor) {
  if (size == kDynamic || size % divisor == 0) return {};
  return rule_error(op, label, "{} is {}, expected a multiple of {} {}", name, size, divisor_name,
                    divisor);
}

struct Groups {
  int64_t feature, batch;
};

Status check_groups(const Instruction& op, const ConvDims& numbers, const Groups& groups) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  if (groups.feature < 1) {
    return rule_error(op, "C21", "feature_group_count is {}, expected at least 1", groups.feature);
  }
  if (groups.batch < 1) {
    return rule_error(op, "C22", "batch_group_count is {}, expected at least 1", groups.batch);
  }
  if (groups.feature != 1 && groups.batch != 1) {
    return rule_error(op, "C23",
                      "feature_group_count is {} and batch_group_count {}, expected one of "
                      "them to be 1",
                      groups.feature, groups.batch);
  }
  const int64_t batch = lhs.dims()[at(numbers.input_batch)];
  const int64_t feature = lhs.dims()[at(numbers.input_feature)];
  const int64_t kernel_in = rhs.dims()[at(numbers.kernel_input_feature)];
  const int64_t kernel_out = rhs.dims()[at(numbers.kernel_output_feature)];
  TENON_TRY(
      check_multiple(op, "C10", "input batch size", batch, "batch_group_count", groups.batch));
  TENON_TRY(check_multiple(op, "C11", "input feature size", feature, "feature_group_count",
                           groups.feature));
  if (feature != kDynamic && !same_size(kernel_in, feature / groups.feature)) {
    return rule_error(op, "C14", "kernel input feature size is {}, expected {} / {}", kernel_in,
                      feature, groups.feature);
  }
  TENON_TRY(check_multiple(op, "C15", "kernel output feature size", kernel_out, "batch_group_count",
                           groups.batch));
  return check_multiple(op, "C16", "kernel output feature size", kernel_out, "feature_group_count",
                        groups.feature);
}

Status check_quantization(const Instruction& op, const ConvDims& numbers, const Type& result) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  if (!lhs.is_quantized() && !rhs.is_quantized() && !result.is_quantized()) return {};
  if (is_per_axis(rhs) && rhs.quantized()->axis != numbers.kernel_output_feature) {
    return rule_error(op, "C29",
                      "rhs is quantized along dimension {}, expected {}, its output feature",
                      rhs.quantized()->axis, numbers.kernel_output_feature);
  }
  if (is_per_axis(result) && result.quantized()->axis != numbers.output_feature) {
    return rule_error(op, "C30", "result is quantized along dimension {}, expected {}, its feature",
                      result.quantized()->axis, numbers.output_feature);
  }
  return check_quantized_contraction(op, {"C28", "C31", "C32", "C33", "C34"}, result);
}

}  // namespace

Types convolution_with(const Instruction& op, const I64Matrix* padding) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  const int64_t rank = lhs.rank();
  TENON_TRY(check_per_tensor(op, "I1", 0));
  if (rank < 2 || rhs.rank() != rank) {
    return rule_error(op, "C1", "operands are {} and {}, expected the same rank of at least 2",
                      lhs.to_string(), rhs.to_string());
  }
  const auto& numbers = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  TENON_TRY(check_numbers(
      op, "C12", "C13", "input", numbers.input_spatial,
      all_dimensions(numbers.input_batch, numbers.input_feature, numbers.input_spatial), rank));
  TENON_TRY(check_numbers(op, "C17", "C18", "kernel", numbers.kernel_spatial,
                          all_dimensions(numbers.kernel_input_feature,
                                         numbers.kernel_output_feature, numbers.kernel_spatial),
                          rank));
  TENON_TRY(check_numbers(
      op, "C19", "C20", "output", numbers.output_spatial,
      all_dimensions(numbers.output_batch, numbers.output_feature, numbers.output_spatial), rank));

  const int64_t spatial = rank - 2;
  const auto ones = [&](AttrKey key) { return op.i64s_or(key, at(spatial), 1); };
  const I64s strides = ones(AttrKey::window_strides);
  const I64s lhs_dilation = ones(AttrKey::lhs_dilation);
  const I64s rhs_dilation = ones(AttrKey::rhs_dilation);
  // JAX has written dynamic_conv with one stride too many, and other tools accept it; the extra
  // stride is ignored.
  if (op.code() != OpCode::kDynamicConv || length(strides) < spatial) {
    TENON_TRY(check_length(op, "C2", "window_strides", length(strides), spatial));
  }
  TENON_TRY(check_positive(op, "C3", "window_strides", strides));
  if (padding != nullptr && (padding->rows != spatial || (spatial != 0 && padding->columns != 2))) {
    return rule_error(op, "C4", "padding has shape [{}, {}], expected [{}, 2]", padding->rows,
                      padding->columns, spatial);
  }
  TENON_TRY(check_length(op, "C5", "lhs_dilation", length(lhs_dilation), spatial));
  TENON_TRY(check_positive(op, "C6", "lhs_dilation", lhs_dilation));
  TENON_TRY(check_length(op, "C7", "rhs_dilation", length(rhs_dilation), spatial));
  TENON_TRY(check_positive(op, "C8", "rhs_dilation", rhs_dilation));
  if (const auto* reversal = op.attr<BoolsAttr>(AttrKey::window_reversal)) {
    TENON_TRY(check_length(op, "C9", "window_reversal", length(reversal->values), spatial));
  }
  const Groups groups{op.integer(AttrKey::feature_group_count, 1),
                      op.integer(AttrKey::batch_group_count, 1)};
  TENON_TRY(check_groups(op, numbers, groups));
  TENON_TRY(check_precisions(op, "C24"));
  if (!lhs.is_quantized() && !rhs.is_quantized() && lhs.element_type() != rhs.element_type()) {
    return rule_error(op, "C27", "element types differ: {} and {}", element_to_string(lhs),
                      element_to_string(rhs));
  }

  std::vector<Dim> dims(at(rank));
  const int64_t batch = lhs.dims()[at(numbers.input_batch)];
  dims[at(numbers.output_batch)] =
      groups.batch == 1 ? dim_of(lhs, numbers.input_batch)
                        : Dim{batch == kDynamic ? kDynamic : batch / groups.batch, kDynamic};
  dims[at(numbers.output_feature)] = dim_of(rhs, numbers.kernel_output_feature);
  for (size_t i = 0; i < at(spatial) && padding != nullptr; ++i) {
    const auto row = static_cast<int64_t>(i);
    const Window window{rhs.dims()[at(numbers.kernel_spatial[i])],
                        strides[i],
                        padding->at(row, 0),
                        padding->at(row, 1),
                        lhs_dilation[i],
                        rhs_dilation[i]};
    const auto count = window_count(lhs.dims()[at(numbers.input_spatial[i])], window);
    if (!count)
      return rule_error(op, "C25", "the padded size of spatial dimension {} overflows", i);
    dims[at(numbers.output_spatial[i])] = {*count, kDynamic};
  }
  // A producer that states an element type may request wider accumulation.
  const bool is_stated = op.result_count() == 1 && op.result_type().is_tensor();
  const Type result = with_dims(is_stated ? op.result_type() : lhs, dims);
  TENON_TRY(check_product_element(op, "C27", result));
  TENON_TRY(check_quantization(op, numbers, result));
  return one(result);
}

Types convolution(const Instruction& op) {
  const int64_t spatial = std::max<int64_t>(op.operand_type(0).rank() - 2, 0);
  const I64Matrix padding = op.padding_or_zero(at(spatial));
  return convolution_with(op, &padding);
}

}  // namespace tenon::hlo::infer
