// Quantisation: QDQ, QLinear ops, products of integers.
#include <cmath>

#include "core/types/float_convert.h"
#include "hlo/onnx/ops/quantized.h"
#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {
namespace {

using Lq = OnnxLowering;

// Scales and zero points in the shape of `x`: one for all, one for each index of an axis, or one
// for each block of it.
Value spread(Lq& n, Value v, Value x) {
  const int64_t block = n.integer("block_size", 0);
  if (n.count_of(v) == 1 && n.rank_of(v) <= 1)
    return n.broadcast_to(n.reshape(v, {}), n.dims_of(x));
  if (n.rank_of(v) == 1 && block == 0) {
    return n.broadcast_in_dim(v, n.dims_of(x), {normal_axis(n.integer("axis", 1), n.rank_of(x))});
  }
  if (n.rank_of(v) != n.rank_of(x))
    bad_onnx("scales of rank {} for rank {}", n.rank_of(v), n.rank_of(x));
  const auto axis = static_cast<size_t>(normal_axis(n.integer("axis", 1), n.rank_of(x)));
  const int64_t size = n.dims_of(x)[axis], blocks = n.dims_of(v)[axis];
  const int64_t length = block > 0 ? block : blocks > 0 ? (size + blocks - 1) / blocks : 1;
  Dims wide = n.dims_of(v);
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(axis) + 1, length);
  I64s places;
  for (size_t i = 0; i < wide.size(); ++i) {
    if (i != axis + 1) places.push_back(static_cast<int64_t>(i));
  }
  Dims flat = n.dims_of(v);
  flat[axis] = blocks * length;
  const Value repeated = n.reshape(n.broadcast_in_dim(v, wide, places), flat);
  return n.slice_of(repeated, static_cast<int64_t>(axis), 0, size);
}

// Rounds to an integer type with its limits, or to a float of eight or four bits.
Value saturate_to(const OnnxEmitter& n, Value x, ElementType type, bool saturates) {
  if (is_float(type)) {
    if (saturates || bit_width(type) < 8) x = n.min(n.max(x, -float_max(type)), float_max(type));
    return n.convert(x, type);
  }
  const double least = n.identity_of(OpCode::kMaximum, type).get_double(0);
  const double most = n.identity_of(OpCode::kMinimum, type).get_double(0);
  return n.convert(n.min(n.max(x, least), most), type);
}

}  // namespace

Value onnx_quantize(OnnxLowering& n, Value x, Value scale, std::optional<Value> zero,
                    ElementType type) {
  const Value scaled = n.div(x, scale);
  if (is_float(type)) return saturate_to(n, scaled, type, n.flag("saturate", true));
  Value rounded = n.unary(OpCode::kRoundNearestEven, scaled);
  if (zero) rounded = n.add(rounded, n.convert(*zero, n.type_of(rounded)));
  return saturate_to(n, rounded, type, true);
}

Value onnx_centered(OnnxLowering& n, Value x, size_t zero, int64_t axis) {
  const Value wide = n.convert(x, ElementType::kS32);
  if (!n.has(zero)) return wide;
  Value point = n.convert(n.in(zero), ElementType::kS32);
  if (n.rank_of(point) == 1) {
    point = n.count_of(point) == 1
                ? n.reshape(point, {})
                : n.broadcast_in_dim(point, n.dims_of(x), {normal_axis(axis, n.rank_of(x))});
  }
  return n.sub(wide, point);
}

namespace {

Values lower_quantize(Lq& n) {
  const Value x = n.in(0);
  const ElementType type =
      n.has(2) ? n.type_of(n.in(2)) : n.type_attribute("output_dtype", ElementType::kU8);
  std::optional<Value> zero;
  if (n.has(2)) zero = spread(n, n.in(2), x);
  ElementType wide = n.type_attribute("precision", ElementType::kF32);
  if (bit_width(wide) < 32) wide = ElementType::kF32;
  const Value scale = spread(n, n.in(1), x);
  // Integers of 32 bits are kept exact.
  return {onnx_quantize(n, n.convert(x, wide), n.convert(scale, wide), zero, type)};
}

Values lower_dequantize(Lq& n) {
  const Value x = n.in(0);
  const ElementType type = n.type_attribute("output_dtype", n.type_of(n.in(1)));
  // Exact where the numbers themselves are.
  Value y =
      is_float(n.type_of(x)) ? n.convert(x, ElementType::kF32) : n.convert(x, ElementType::kS32);
  if (n.has(2)) y = n.sub(y, n.convert(spread(n, n.in(2), x), n.type_of(y)));
  y = n.convert(y, ElementType::kF32);
  return {n.convert(n.mul(y, n.convert(spread(n, n.in(1), x), ElementType::kF32)), type)};
}

Values lower_dynamic_quantize(Lq& n) {
  const Value x = n.in(0);
  const I64s axes = all_axes(n.rank_of(x));
  const Value most = n.max(n.reduce(OpCode::kMaximum, x, axes, false), 0);
  const Value least = n.min(n.reduce(OpCode::kMinimum, x, axes, false), 0);
  const Value range = n.div(n.sub(most, least), 255);
  const Value scale = n.select(n.compare(Direction::kEq, range, 0), n.like(x, 1), range);
  const Value zero =
      n.unary(OpCode::kRoundNearestEven, n.min(n.max(n.neg(n.div(least, scale)), 0), 255));
  const Value rounded = n.add(n.unary(OpCode::kRoundNearestEven, n.div(x, scale)), zero);
  return {saturate_to(n, rounded, ElementType::kU8, true), scale,
          n.convert(zero, ElementType::kU8)};
}

Values lower_matmul_integer(Lq& n) {
  return {n.matmul(onnx_centered(n, n.in(0), 2, -2), onnx_centered(n, n.in(1), 3, -1))};
}

Values lower_conv_integer(Lq& n) {
  return {onnx_convolution_of(n, onnx_centered(n, n.in(0), 2, 1), onnx_centered(n, n.in(1), 3, 0))};
}

// A number or a vector beside dimension `axis` of x.
Value beside(Lq& n, Value v, Value x, int64_t axis) {
  if (n.count_of(v) == 1) return n.reshape(v, {});
  if (n.rank_of(v) != 1) return v;
  return n.broadcast_in_dim(v, n.dims_of(x), {normal_axis(axis, n.rank_of(x))});
}

// Sums of products, scaled to the result's type.
Value requantize(Lq& n, Value sum, Value x_scale, Value y_scale, size_t scale, size_t zero) {
  const Value wide =
      n.mul(n.convert(sum, ElementType::kF32),
            n.mul(n.convert(x_scale, ElementType::kF32), n.convert(y_scale, ElementType::kF32)));
  const Value point = n.in(zero);
  const Value over = n.convert(
      n.reshape(n.in(scale), n.count_of(n.in(scale)) == 1 ? Dims{} : n.dims_of(n.in(scale))),
      ElementType::kF32);
  const Value at = n.count_of(point) == 1 ? n.reshape(point, {}) : point;
  return onnx_quantize(n, wide, over, at, n.type_of(point));
}

// Inputs: a, its scale and zero point, b, its scale and zero point, the result's.
Values lower_qlinear_matmul(Lq& n) {
  const Value sum = n.matmul(onnx_centered(n, n.in(0), 2, -2), onnx_centered(n, n.in(3), 5, -1));
  return {requantize(n, sum, beside(n, n.in(1), sum, -2), beside(n, n.in(4), sum, -1), 6, 7)};
}

Values lower_qlinear_conv(Lq& n) {
  Value sum =
      onnx_convolution_of(n, onnx_centered(n, n.in(0), 2, 1), onnx_centered(n, n.in(3), 5, 0));
  if (n.has(8)) sum = n.add(sum, n.broadcast_in_dim(n.in(8), n.dims_of(sum), {1}));
  return {requantize(n, sum, beside(n, n.in(1), sum, 1), beside(n, n.in(4), sum, 1), 6, 7)};
}

constexpr OnnxRow kQuantizationRows[] = {
    {"ConvInteger", 10, lower_conv_integer},
    {"DequantizeLinear", 10, lower_dequantize},
    {"DequantizeLinear", 1, lower_dequantize, 0, kMicrosoftDomain},
    {"DynamicQuantizeLinear", 11, lower_dynamic_quantize},
    {"MatMulInteger", 10, lower_matmul_integer},
    {"QLinearConv", 10, lower_qlinear_conv},
    {"QLinearMatMul", 10, lower_qlinear_matmul},
    {"QuantizeLinear", 10, lower_quantize},
    {"QuantizeLinear", 1, lower_quantize, 0, kMicrosoftDomain},
};

}  // namespace

std::span<const OnnxRow> onnx_quantization_rows() { return kQuantizationRows; }

}  // namespace tenon::hlo
