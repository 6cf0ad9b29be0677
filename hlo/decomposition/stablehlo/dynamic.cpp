// Ops whose shape or amounts are operands, once the result types are static. The type then
// determines the shape, so a shape operand has no further effect. Constant amounts give the static
// op; other amounts are used at run time.
#include <algorithm>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"
#include "hlo/inference/infer_util.h"

namespace tenon::hlo::decomposition {
namespace {

// The result of op `code` with those attributes of `op` that it has, and with `op`'s result type.
Values as_static(Builder& b, const Instruction& op, OpCode code, const std::vector<Value>& operands,
                 Builder::AttrList more = {}) {
  auto form = std::make_unique<Instruction>(code, operands, op.result_types());
  for (const auto& [key, value] : op.attributes()) {
    if (form->info().find_attribute(key) != nullptr) form->mutable_attributes().set(key, value);
  }
  for (const auto& [key, value] : more) form->mutable_attributes().set(key, value);
  Instruction* made = b.create(std::move(form));
  return finished(b, {made ? made->result() : Value{}});
}

// A rank-1 operand of amounts, converted to s64, element by element.
class Amounts {
 public:
  Amounts(Builder& b, Value list) : b_(b), list_(b.convert(list, ElementType::kS64)) {}
  /// Element `d` of the list, repeated `count` times.
  Expr operator()(int64_t d, int64_t count) const {
    const Value scalar = b_.reshape(b_.slice(list_, {d}, {d + 1}), {});
    return {b_, b_.broadcast_scalar(scalar, {count})};
  }

 private:
  Builder& b_;
  Value list_;
};

// x padded along `axis` to the size of the result: element i is element (i - low) / (interior + 1)
// of x.
Value pad_axis(Builder& b, Value x, Value padding, int64_t axis, int64_t size, const Amounts& low,
               const Amounts& interior) {
  if (!b.ok()) return {};
  const int64_t count = x.type().dims()[at(axis)];
  Dims dims = x.type().dims();
  dims[at(axis)] = size;
  const Expr offset = Expr(b, b.iota(ElementType::kS64, {size}, 0)) - low(axis, size);
  const Expr step = interior(axis, size) + 1.0;
  const Expr source = offset / step;
  const Expr is_element =
      (offset >= 0.0) & (offset == source * step) & (source < static_cast<double>(count));
  const Value kept = take(b, x, source.value(), axis);
  return b.select(b.broadcast_in_dim(is_element.value(), dims, {axis}), kept,
                  b.broadcast_scalar(padding, dims));
}

// `x` padded by run-time amounts to `dims`. The high padding follows from the sizes.
Value pad_by(Builder& b, Value x, Value padding, const Dims& dims, Value low, Value interior) {
  if (!b.ok()) return {};
  const Dims from = x.type().dims();
  if (std::find(from.begin(), from.end(), 0) != from.end()) {
    return b.broadcast_scalar(padding, dims);
  }
  const Amounts lows(b, low), interiors(b, interior);
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    x = pad_axis(b, x, padding, d, dims[at(d)], lows, interiors);
  }
  return x;
}

}  // namespace

Values dynamic_broadcast_in_dim(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  return as_static(b, op, OpCode::kBroadcastInDim, {op.operand(0)});
}

Values dynamic_iota(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  return as_static(b, op, OpCode::kIota, {});
}

Values dynamic_reshape(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  return as_static(b, op, OpCode::kReshape, {op.operand(0)});
}

Values dynamic_gather(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const auto& numbers = *op.attr<GatherDims>(AttrKey::dimension_numbers);
  I64s sizes;
  if (const auto constant = constant_list(op.operand(2))) {
    sizes = *constant;
  } else {
    // The offset dimensions of the result are the dimensions of the slice that are not collapsed,
    // in order.
    const Dims& dims = op.result_type().dims();
    size_t offset = 0;
    for (int64_t d = 0; d < op.operand_type(0).rank(); ++d) {
      const bool dropped =
          contains(numbers.collapsed_slice_dims, d) || contains(numbers.operand_batching_dims, d);
      if (!dropped && offset == numbers.offset_dims.size()) {
        return constraint_error(op, "C7", "offset_dims names {} dimensions, expected more", offset);
      }
      sizes.push_back(dropped ? 1 : dims[at(numbers.offset_dims[offset++])]);
    }
  }
  return as_static(b, op, OpCode::kGather, {op.operand(0), op.operand(1)},
                   {{AttrKey::slice_sizes, sizes}});
}

Values dynamic_pad(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const auto low = constant_list(op.operand(2));
  const auto high = constant_list(op.operand(3));
  const auto interior = constant_list(op.operand(4));
  if (low && high && interior) {
    return as_static(b, op, OpCode::kPad, {op.operand(0), op.operand(1)},
                     {{AttrKey::edge_padding_low, *low},
                      {AttrKey::edge_padding_high, *high},
                      {AttrKey::interior_padding, *interior}});
  }
  return finished(b, {pad_by(b, op.operand(0), op.operand(1), op.result_type().dims(),
                             op.operand(2), op.operand(4))});
}

Values real_dynamic_slice(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const auto start = constant_list(op.operand(1));
  const auto limit = constant_list(op.operand(2));
  const auto strides = constant_list(op.operand(3));
  if (start && limit && strides) {
    return as_static(b, op, OpCode::kSlice, {op.operand(0)},
                     {{AttrKey::start_indices, *start},
                      {AttrKey::limit_indices, *limit},
                      {AttrKey::strides, *strides}});
  }
  const Dims& dims = op.result_type().dims();
  if (op.result_type().shape().element_count() == 0) {
    return finished(b, {b.splat(op.result_type().shape(), 0)});
  }
  const Amounts starts(b, op.operand(1)), steps(b, op.operand(3));
  Value x = op.operand(0);
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    const int64_t size = dims[at(d)];
    const Expr position(b, b.iota(ElementType::kS64, {size}, 0));
    x = take(b, x, (starts(d, size) + position * steps(d, size)).value(), d);
  }
  return finished(b, {x});
}

namespace {

// The size of a convolution's padded input that gives `outputs` windows and nothing after the last
// one; nothing if the size overflows.
std::optional<int64_t> padded_size(int64_t outputs, int64_t kernel, int64_t stride,
                                   int64_t dilation) {
  const auto product = [](int64_t x, int64_t y) { return static_cast<__int128>(x) * y; };
  const __int128 window = kernel == 0 ? 0 : product(kernel - 1, dilation) + 1;
  return infer::fits(outputs == 0 ? 0 : product(outputs - 1, stride) + window);
}

}  // namespace

// If the padding is known only at run time, the input is padded first, including dilation.
Values dynamic_conv(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const auto spatial = static_cast<size_t>(op.operand_type(0).rank() - 2);
  // One stride too many is accepted only for dynamic_conv (hlo/inference/rules/convolution.cpp).
  I64s strides = op.i64s_or(AttrKey::window_strides, spatial, 1);
  strides.resize(spatial);
  if (const auto constant = constant_list(op.operand(2))) {
    const I64Matrix padding{static_cast<int64_t>(spatial), 2, *constant};
    return as_static(b, op, OpCode::kConvolution, {op.operand(0), op.operand(1)},
                     {{AttrKey::padding, padding}, {AttrKey::window_strides, strides}});
  }
  const Type& result = op.result_type();
  if (result.shape().element_count() == 0) return finished(b, {b.splat(result.shape(), 0)});
  const auto& numbers = *op.attr<ConvDims>(AttrKey::dimension_numbers);
  const I64s dilation = op.i64s_or(AttrKey::lhs_dilation, spatial, 1);
  const I64s kernel_dilation = op.i64s_or(AttrKey::rhs_dilation, spatial, 1);
  // The amounts in the order of the input's dimensions; zero for batch and feature.
  const size_t rank = spatial + 2;
  const Value none = b.reshape(b.i64_constant(0), {1});
  std::vector<Value> low(rank, none), interior(rank, none);
  Dims dims = op.operand_type(0).dims();
  const Value amounts = b.convert(op.operand(2), ElementType::kS64);
  for (size_t i = 0; i < spatial; ++i) {
    const auto row = static_cast<int64_t>(i);
    const size_t d = at(numbers.input_spatial[i]);
    low[d] = b.reshape(b.slice(amounts, {row, 0}, {row + 1, 1}), {1});
    interior[d] = b.reshape(b.i64_constant(dilation[i] - 1), {1});
    const auto padded = padded_size(result.dims()[at(numbers.output_spatial[i])],
                                    op.operand_type(1).dims()[at(numbers.kernel_spatial[i])],
                                    strides[i], kernel_dilation[i]);
    if (!padded) {
      return constraint_error(op, "C25", "the padded size of spatial dimension {} overflows", i);
    }
    dims[d] = *padded;
  }
  const Value zero = b.scalar(op.operand_type(0).element_type(), 0);
  const Value padded =
      pad_by(b, op.operand(0), zero, dims, b.concatenate(low, 0), b.concatenate(interior, 0));
  return as_static(b, op, OpCode::kConvolution, {padded, op.operand(1)},
                   {{AttrKey::lhs_dilation, I64s(spatial, 1)}, {AttrKey::window_strides, strides}});
}

Values get_dimension_size(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const int64_t size = op.operand_type(0).dims()[at(op.integer(AttrKey::dimension))];
  return finished(b, {b.constant(Literal::scalar_integer(ElementType::kS32, size))});
}

}  // namespace tenon::hlo::decomposition
