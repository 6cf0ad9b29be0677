// Quantized types as arithmetic: uniform_dequantize and uniform_quantize on stored integers; every
// other op without regions as dequantize, the op on expressed types, quantize.
#include <algorithm>
#include <cmath>

#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/ops/ops.h"

namespace tenon::hlo::decomposition {
namespace {

// Wide enough for any difference between a stored integer and a zero point.
ElementType wide_integer(ElementType storage) {
  return bit_width(storage) <= 16 ? ElementType::kS32 : ElementType::kS64;
}

// One number per scale of `q`, as an array of `dims`.
template <class Set>
Value parameters(Builder& b, const QuantizedType& q, ElementType type, const Dims& dims, Set set) {
  if (!q.is_per_axis()) {
    Literal one(Shape(type, {}));
    set(one, 0);
    return b.constant(DenseAttr::splat(Shape(type, dims), std::move(one)));
  }
  Literal list(Shape(type, {static_cast<int64_t>(q.scales.size())}));
  for (size_t i = 0; i < q.scales.size(); ++i) set(list, i);
  return b.broadcast_in_dim(b.constant(std::move(list)), dims, {q.axis});
}

Value scales(Builder& b, const QuantizedType& q, const Dims& dims) {
  return parameters(b, q, q.expressed, dims, [&](Literal& to, size_t i) {
    to.set_double(static_cast<int64_t>(i), q.scales[i]);
  });
}

Value zero_points(Builder& b, const QuantizedType& q, ElementType type, const Dims& dims) {
  return parameters(b, q, type, dims, [&](Literal& to, size_t i) {
    if (is_integer(type)) {
      to.set_integer(static_cast<int64_t>(i), q.zero_points[i]);
    } else {
      to.set_double(static_cast<int64_t>(i), static_cast<double>(q.zero_points[i]));
    }
  });
}

// (q - zero point), converted to the expressed type, times scale. The specification subtracts in
// the storage type, where the difference may overflow; here it cannot.
Value dequantize(Builder& b, Value x) {
  if (!b.ok() || !x.type().is_quantized()) return x;
  const QuantizedType q = *x.type().quantized();
  const Dims dims = x.type().dims();
  const ElementType wide = wide_integer(q.storage);
  const Value stored = b.convert(b.bitcast(x, Type::tensor(q.storage, dims)), wide);
  const Value offset = b.sub(stored, zero_points(b, q, wide, dims));
  return b.mul(b.convert(offset, q.expressed), scales(b, q, dims));
}

// x / scale + zero point in the expressed type, clamped, rounded to nearest even; NaN becomes 0.
Value quantize(Builder& b, Value value, const Type& type) {
  if (!b.ok() || !type.is_quantized()) return value;
  const QuantizedType& q = *type.quantized();
  const Dims& dims = type.dims();
  const Expr x(b, b.convert(value, q.expressed));
  const Expr moved =
      x / Expr(b, scales(b, q, dims)) + Expr(b, zero_points(b, q, q.expressed, dims));
  const auto low = static_cast<double>(q.storage_min);
  const auto high = static_cast<double>(q.storage_max);
  const Expr rounded =
      min(max(moved, moved.constant(low)), moved.constant(high)).apply(OpCode::kRoundNearestEven);
  const Expr number = select(moved != moved, 0.0, rounded);
  // A bound that rounds away from zero in the expressed type must not leave the storage type.
  const Expr integer(b, b.convert(number.value(), wide_integer(q.storage)));
  const Expr bounded = min(max(integer, integer.constant(low)), integer.constant(high));
  return b.bitcast(b.convert(bounded.value(), q.storage), type);
}

Type storage_type(const Type& type) {
  return type.is_quantized() ? Type::tensor(type.element_type(), type.dims()) : type;
}

// An op that only moves elements, applied to the integers.
Values on_storage(Builder& b, const Instruction& op) {
  Cloner cloner;
  std::unique_ptr<Instruction> copy = cloner.clone(op);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Value x = op.operand(i);
    const Value stored = x.type().is_quantized() ? b.bitcast(x, storage_type(x.type())) : x;
    if (!b.ok()) return finished(b, {});
    copy->set_operand(i, stored);
  }
  copy->set_result_types({storage_type(op.result_type())});
  Instruction* moved = b.create(std::move(copy));
  if (moved == nullptr) return finished(b, {});
  const bool quantized = op.result_type().is_quantized();
  return finished(b, {quantized ? b.bitcast(moved->result(), op.result_type()) : moved->result()});
}

}  // namespace

bool touches_quantized(const Instruction& op) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand_type(i).is_quantized()) return true;
  }
  return std::any_of(op.result_types().begin(), op.result_types().end(),
                     [](const Type& type) { return type.is_quantized(); });
}

bool works_on_storage(const Instruction& op) {
  switch (op.code()) {
    case OpCode::kConstant:
    case OpCode::kReshape:
    case OpCode::kBitcastConvert:
    case OpCode::kOptimizationBarrier:
    case OpCode::kGetDimensionSize:
    case OpCode::kAllGather:
    case OpCode::kAllToAll:
    case OpCode::kAsyncDone:
    case OpCode::kAsyncStart:
    case OpCode::kCollectiveBroadcast:
    case OpCode::kCollectivePermute:
    case OpCode::kInfeed:
    case OpCode::kOutfeed:
    case OpCode::kRecv:
    case OpCode::kSend:
      return true;
    default:
      break;
  }
  // The numbers that it generates are quantized values.
  if (op.code() == OpCode::kIota || op.code() == OpCode::kDynamicIota) return false;
  if (op.info().category != Category::kShape || op.result_count() != 1) return false;
  const QuantizedType* const result = op.result_type().quantized();
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const QuantizedType* const operand = op.operand_type(i).quantized();
    // constant_like uses only the dimensions of its operand.
    const bool differs = operand != nullptr && (result == nullptr || !(*operand == *result));
    if (differs) {
      // The quantization dimension moves with its axis; the numbers do not change.
      return op.code() == OpCode::kTranspose || op.code() == OpCode::kBroadcastInDim;
    }
  }
  return true;
}

Type expressed_type(const Type& type) {
  return type.is_quantized() ? Type::tensor(type.quantized()->expressed, type.dims()) : type;
}

std::unique_ptr<Instruction> expressed_copy(const Instruction& op, Cloner& cloner) {
  std::unique_ptr<Instruction> copy = cloner.clone(op);
  std::vector<Type> types;
  for (const Type& type : op.result_types()) types.push_back(expressed_type(type));
  copy->set_result_types(std::move(types));
  return copy;
}

Values uniform_dequantize(Builder& b, const Instruction& op) {
  return finished(b, {dequantize(b, op.operand(0))});
}

Values uniform_quantize(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  return finished(b, {quantize(b, dequantize(b, op.operand(0)), op.result_type())});
}

Values quantized(Builder& b, const Instruction& op) {
  for (const Type& type : op.result_types()) {
    if (type.is_tensor() && !type.shape().is_static()) TENON_TRY(check_static(op));
  }
  if (op.code() == OpCode::kUniformDequantize) return uniform_dequantize(b, op);
  if (op.code() == OpCode::kUniformQuantize) return uniform_quantize(b, op);
  if (op.code() == OpCode::kBitcastConvert || op.code() == OpCode::kConstant) {
    return internal_error("{}: works on stored integers as it is", op.name());
  }
  if (works_on_storage(op) && op.info().category == Category::kShape) return on_storage(b, op);
  if (op.region_count() != 0) return quantized_with_regions(b, op);
  Cloner cloner;
  std::vector<Value> reals;
  for (size_t i = 0; i < op.operand_count(); ++i) reals.push_back(dequantize(b, op.operand(i)));
  if (!b.ok()) return finished(b, {});
  std::unique_ptr<Instruction> copy = expressed_copy(op, cloner);
  for (size_t i = 0; i < reals.size(); ++i) copy->set_operand(i, reals[i]);
  Instruction* computed = b.create(std::move(copy));
  std::vector<Value> results;
  for (uint32_t i = 0; computed != nullptr && i < op.result_count(); ++i) {
    results.push_back(quantize(b, computed->result(i), op.result_type(i)));
  }
  return finished(b, std::move(results));
}

}  // namespace tenon::hlo::decomposition
