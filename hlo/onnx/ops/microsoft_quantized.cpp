// The domain com.microsoft: ops on quantised numbers, and weights of a few bits.
//
// ONNX Runtime's page ContribOperators defines them. A quantised number q stands for
// (q - zero point) * scale.
#include <algorithm>
#include <cmath>

#include "hlo/onnx/ops/quantized.h"
#include "hlo/onnx/ops/windows.h"

namespace tenon::hlo {
namespace {

using Lc = OnnxLowering;

// --- Numbers

Value scalar_of(Lc& n, size_t i) {
  const Value x = n.in(i);
  if (n.count_of(x) != 1) refuse_onnx("scales or zero points of a vector are not supported");
  return n.reshape(x, {});
}

// Inputs `first`, its scale and its zero point.
Value real_of(Lc& n, size_t first) {
  if (n.has(first + 2)) static_cast<void>(scalar_of(n, first + 2));  // Vectors are refused.
  const Value wide = onnx_centered(n, n.in(first), first + 2, -1);
  return n.mul(n.convert(wide, ElementType::kF32), scalar_of(n, first + 1));
}

// The result has the type of the input `zero`, or `otherwise`.
Value quantized(Lc& n, Value x, size_t scale, size_t zero, ElementType otherwise) {
  std::optional<Value> point;
  if (n.has(zero)) point = scalar_of(n, zero);
  return onnx_quantize(n, x, scalar_of(n, scale), point, point ? n.type_of(*point) : otherwise);
}

// With channels last: the array with its channels behind the batch, and back.
Value channels_second(Lc& n, Value x) {
  if (!n.flag("channels_last")) return x;
  n.check_rank(x, 3);
  I64s order = all_axes(n.rank_of(x));
  order.insert(order.begin() + 1, order.back());
  order.pop_back();
  return n.transpose(x, order);
}
Value channels_back(Lc& n, Value x) {
  if (!n.flag("channels_last")) return x;
  I64s order = all_axes(n.rank_of(x));
  order.push_back(1);
  order.erase(order.begin() + 1);
  return n.transpose(x, order);
}

// --- Elements

// QLinearAdd and QLinearMul: a, b and the result, of which each has a scale and a zero point.
Values lower_qlinear_binary(Lc& n) {
  const Value y = n.binary(n.row().code(), real_of(n, 0), real_of(n, 3));
  return {quantized(n, y, 6, 7, n.type_of(n.in(0)))};
}

Values lower_qlinear_sigmoid(Lc& n) {
  return {quantized(n, n.sigmoid(real_of(n, 0)), 3, 4, n.type_of(n.in(0)))};
}

Values lower_qlinear_leaky_relu(Lc& n) {
  const Value x = real_of(n, 0);
  const Value below = n.mul(x, n.real("alpha", 0.01));
  const Value y = n.select(n.compare(Direction::kLt, x, 0), below, x);
  return {quantized(n, y, 3, 4, n.type_of(n.in(0)))};
}

Values lower_qlinear_softmax(Lc& n) {
  auto attributes = n.node().attributes;
  // Versions from 13 on are alike.
  const int64_t opset = std::clamp<int64_t>(n.integer("opset", 13), 1, 13);
  if (!n.has_attribute("axis")) attributes["axis"].integer = -1;
  std::erase_if(attributes, [](const auto& each) { return each.first != "axis"; });
  const Value y =
      n.scope().lower("Softmax", {real_of(n, 0)}, std::move(attributes), 1, n.builder(), opset)[0];
  return {quantized(n, y, 3, 4, n.type_of(n.in(0)))};
}

Values lower_qlinear_where(Lc& n) {
  const Value x = real_of(n, 1), y = real_of(n, 4);
  const Dims dims = broadcast_dims({n.dims_of(n.in(0)), n.dims_of(x), n.dims_of(y)});
  const Value chosen =
      n.select(n.broadcast_to(n.in(0), dims), n.broadcast_to(x, dims), n.broadcast_to(y, dims));
  return {quantized(n, chosen, 7, 8, n.type_of(n.in(1)))};
}

// The result's scale and zero point come first, then each input with its own.
Values lower_qlinear_concat(Lc& n) {
  Values parts;
  for (size_t i = 2; i < n.input_count(); i += 3)
    parts.push_back(quantized(n, real_of(n, i), 0, 1, n.type_of(n.in(i))));
  if (parts.empty()) bad_onnx("it has no inputs");
  return {n.concatenate(parts, normal_axis(n.integer("axis", 0), n.rank_of(parts[0])))};
}

// --- Means

Values lower_qlinear_average_pool(Lc& n) {
  auto attributes = n.node().attributes;
  attributes.erase("channels_last");
  const Value x = channels_second(n, real_of(n, 0));
  const Value y = n.scope().lower("AveragePool", {x}, std::move(attributes), 1, n.builder(), 11)[0];
  return {channels_back(n, quantized(n, y, 3, 4, n.type_of(n.in(0))))};
}

Values lower_qlinear_global_average_pool(Lc& n) {
  const Value x = channels_second(n, real_of(n, 0));
  const Value y = n.mean(x, all_axes(n.rank_of(x), 2), true);
  return {channels_back(n, quantized(n, y, 3, 4, n.type_of(n.in(0))))};
}

Values lower_qlinear_reduce_mean(Lc& n) {
  const Value x = real_of(n, 0);
  I64s axes = normal_axes(n.integers("axes"), n.rank_of(x));
  if (axes.empty()) axes = all_axes(n.rank_of(x));
  return {quantized(n, n.mean(x, axes, n.flag("keepdims", true)), 3, 4, n.type_of(n.in(0)))};
}

// --- Products

Value scale_of(Lc& n, size_t i) {
  const Value scale = n.in(i);
  return n.count_of(scale) == 1 ? n.reshape(scale, {}) : scale;
}

// Inputs: a, its scale and zero point, b, its own, a bias of s32, the result's scale and zero
// point.
Values lower_qgemm(Lc& n) {
  n.check_rank(n.in(0), 2, 2);
  n.check_rank(n.in(3), 2, 2);
  // Zero points of b belong to columns of the product.
  const Value a = onnx_centered(n, n.in(0), 2, -1);
  const bool turn_a = n.flag("transA"), turn_b = n.flag("transB");
  const Value b = onnx_centered(n, turn_b ? n.transpose(n.in(3), {1, 0}) : n.in(3), 5, -1);
  Value sum = n.dot_general(a, b, DotDims{{}, {}, {turn_a ? 0 : 1}, {0}});
  if (n.has(6)) sum = n.add(sum, n.in(6));
  const Value scale = n.mul(n.mul(scale_of(n, 1), scale_of(n, 4)), n.real("alpha", 1));
  const Value y = n.mul(n.convert(sum, ElementType::kF32), scale);
  if (!n.has(7)) return {y};
  // Without a zero point the result is a float for ONNX Runtime, scaled all the same.
  if (!n.has(8)) return {n.div(y, scalar_of(n, 7))};
  return {quantized(n, y, 7, 8, n.type_of(n.in(0)))};
}

// Inputs: a, b, their scales, their zero points, a bias.
Values lower_matmul_integer_to_float(Lc& n) {
  const Value sum = n.matmul(onnx_centered(n, n.in(0), 4, -1), onnx_centered(n, n.in(1), 5, -1));
  const Value scale = n.mul(scale_of(n, 2), scale_of(n, 3));
  Value y = n.mul(n.convert(sum, n.type_of(scale)), scale);
  if (n.has(6)) y = n.add(y, n.in(6));
  return {y};
}

// a is quantised by its own limits. Inputs: a, b, its scale and zero point, a bias.
Values lower_dynamic_quantize_matmul(Lc& n) {
  const Values a = n.scope().lower("DynamicQuantizeLinear", {n.in(0)}, {}, 3, n.builder(), 11);
  const Value wide = n.sub(n.convert(a[0], ElementType::kS32), n.convert(a[2], ElementType::kS32));
  const Value sum = n.matmul(wide, onnx_centered(n, n.in(1), 3, -1));
  Value y = n.mul(n.convert(sum, ElementType::kF32), n.mul(a[1], scale_of(n, 2)));
  if (n.has(4)) y = n.add(y, n.in(4));
  return {y};
}

Values lower_qlinear_conv_of_channels(Lc& n) {
  auto attributes = n.node().attributes;
  attributes.erase("channels_last");
  Values inputs = n.inputs();
  inputs[0] = channels_second(n, n.in(0));
  const Values y =
      n.scope().lower("QLinearConv", inputs, std::move(attributes), 1, n.builder(), 10);
  return {channels_back(n, y[0])};
}

// --- Weights of a few bits

// The numbers of `bits` bits in bytes, the lowest bits first, along the last dimension.
Value unpacked(Lc& n, Value bytes, int64_t bits) {
  constexpr int64_t kByte = 8;
  if (bits == kByte) return bytes;
  Values parts;
  for (int64_t at = 0; at < kByte; at += bits) {
    const Value low =
        n.binary(OpCode::kShiftRightLogical, bytes, n.like(bytes, static_cast<double>(at)));
    const double mask = static_cast<double>((int64_t{1} << bits) - 1);
    parts.push_back(
        n.unsqueeze(n.binary(OpCode::kAnd, low, n.like(bytes, mask)), {n.rank_of(bytes)}));
  }
  Dims dims = n.dims_of(bytes);
  dims.back() *= kByte / bits;
  return n.reshape(n.concatenate(parts, n.rank_of(bytes)), dims);
}

// a times the transposed weights of N rows in blocks, of which each has a scale and a zero point.
// Inputs: a, the packed weights [N, blocks, bytes], scales, zero points, an order of the columns,
// a bias.
Values lower_matmul_bits(Lc& n) {
  const Value a = n.in(0);
  n.check_rank(a, 1);
  const int64_t bits = n.integer("bits", 4), block = n.integer("block_size", 0);
  const int64_t rows = n.integer("N", 0), depth = n.integer("K", 0);
  if (bits != 2 && bits != 4 && bits != 8)
    refuse_onnx("weights of {} bits are not supported", bits);
  if (n.has(4)) refuse_onnx("an order of the columns (g_idx) is not supported");
  constexpr int64_t kMost = int64_t{1} << 24, kWidestBlock = int64_t{1} << 16;
  if (block < 16 || block > kWidestBlock || rows < 1 || rows > kMost || depth < 1 || depth > kMost)
    bad_onnx("weights of {} x {} in blocks of {}", rows, depth, block);
  for (const size_t packed : {1U, 3U}) {
    const bool is_float_point = packed == 3 && n.has(3) && is_float(n.type_of(n.in(3)));
    if (n.has(packed) && !is_float_point && n.type_of(n.in(packed)) != ElementType::kU8)
      bad_onnx("packed numbers of {}", name_of(n.type_of(n.in(packed))));
  }
  const int64_t blocks = (depth + block - 1) / block;
  if (n.count_of(n.in(1)) != rows * blocks * (block * bits / 8))
    bad_onnx("{} bytes of weights for {} x {}", n.count_of(n.in(1)), rows, depth);
  const ElementType type = n.type_of(a);
  const auto per_block = [&](Value x) {
    return n.broadcast_in_dim(n.reshape(x, {rows, blocks}), {rows, blocks, block}, {0, 1});
  };
  const Value packed = n.reshape(n.in(1), {rows, blocks, block * bits / 8});
  Value weights = n.convert(unpacked(n, packed, bits), type);
  if (!n.has(3)) {
    weights = n.sub(weights, static_cast<double>(int64_t{1} << (bits - 1)));
  } else if (is_float(n.type_of(n.in(3)))) {
    weights = n.sub(weights, n.convert(per_block(n.in(3)), type));
  } else {
    const int64_t bytes = (blocks * bits + 7) / 8;
    const Value points = unpacked(n, n.reshape(n.in(3), {rows, bytes}), bits);
    weights = n.sub(weights, n.convert(per_block(n.slice_of(points, 1, 0, blocks)), type));
  }
  weights = n.reshape(n.mul(weights, per_block(n.in(2))), {rows, blocks * block});
  weights = n.slice_of(weights, 1, 0, depth);
  Value y = n.dot_general(a, weights, DotDims{{}, {}, {n.rank_of(a) - 1}, {1}});
  if (n.has(5)) y = n.add(y, n.in(5));
  return {y};
}

constexpr auto kAddCode = static_cast<int64_t>(OpCode::kAdd);
constexpr auto kMultiplyCode = static_cast<int64_t>(OpCode::kMultiply);
constexpr OnnxRow kMicrosoftQuantizedRows[] = {
    {"DynamicQuantizeMatMul", 1, lower_dynamic_quantize_matmul, 0, kMicrosoftDomain},
    {"MatMulIntegerToFloat", 1, lower_matmul_integer_to_float, 0, kMicrosoftDomain},
    {"MatMulNBits", 1, lower_matmul_bits, 0, kMicrosoftDomain},
    {"QGemm", 1, lower_qgemm, 0, kMicrosoftDomain},
    {"QLinearAdd", 1, lower_qlinear_binary, kAddCode, kMicrosoftDomain},
    {"QLinearAveragePool", 1, lower_qlinear_average_pool, 0, kMicrosoftDomain},
    {"QLinearConcat", 1, lower_qlinear_concat, 0, kMicrosoftDomain},
    {"QLinearConv", 1, lower_qlinear_conv_of_channels, 0, kMicrosoftDomain},
    {"QLinearGlobalAveragePool", 1, lower_qlinear_global_average_pool, 0, kMicrosoftDomain},
    {"QLinearLeakyRelu", 1, lower_qlinear_leaky_relu, 0, kMicrosoftDomain},
    {"QLinearMul", 1, lower_qlinear_binary, kMultiplyCode, kMicrosoftDomain},
    {"QLinearReduceMean", 1, lower_qlinear_reduce_mean, 0, kMicrosoftDomain},
    {"QLinearSigmoid", 1, lower_qlinear_sigmoid, 0, kMicrosoftDomain},
    {"QLinearSoftmax", 1, lower_qlinear_softmax, 0, kMicrosoftDomain},
    {"QLinearWhere", 1, lower_qlinear_where, 0, kMicrosoftDomain},
};

}  // namespace

std::span<const OnnxRow> onnx_microsoft_quantized_rows() { return kMicrosoftQuantizedRows; }

}  // namespace tenon::hlo
