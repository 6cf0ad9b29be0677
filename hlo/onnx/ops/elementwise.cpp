// Ops of single elements: arithmetic, comparisons, logic, conversions.
#include <cmath>
#include <limits>

#include "core/types/float_convert.h"
#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

Values lower_unary(OnnxLowering& n) { return {n.unary(n.row().code(), n.in(0))}; }

Values lower_binary(OnnxLowering& n) { return {n.binary(n.row().code(), n.in(0), n.in(1))}; }

Values lower_compare(OnnxLowering& n) {
  return {n.compare(static_cast<Direction>(n.row().parameter), n.in(0), n.in(1))};
}

// Sum, Max, Min, Mean: of any number of inputs.
Value lower_variadic(OnnxLowering& n, OpCode code) {
  Value result = n.in(0);
  for (size_t i = 1; i < n.input_count(); ++i) result = n.binary(code, result, n.in(i));
  return result;
}

Values lower_many(OnnxLowering& n) { return {lower_variadic(n, n.row().code())}; }

Values lower_mean_of_inputs(OnnxLowering& n) {
  return {n.div(lower_variadic(n, OpCode::kAdd), static_cast<double>(n.input_count()))};
}

// Division of integers truncates, as StableHLO's does.
Values lower_mod(OnnxLowering& n) {
  const Value x = n.in(0), y = n.in(1);
  const Value remainder = n.binary(OpCode::kRemainder, x, y);
  if (n.flag("fmod") || is_unsigned_integer(n.type_of(x))) return {remainder};
  const Value zero = n.like(x, 0);
  const Value differs = n.compare(Direction::kNe, n.compare(Direction::kLt, remainder, zero),
                                  n.compare(Direction::kLt, y, zero));
  const Value corrects = n.logical_and(n.compare(Direction::kNe, remainder, zero), differs);
  return {n.select(corrects, n.add(remainder, y), remainder)};
}

Values lower_pow(OnnxLowering& n) {
  const Value x = n.in(0), y = n.in(1);
  const ElementType base = n.type_of(x), exponent = n.type_of(y);
  if (base == exponent) return {n.binary(OpCode::kPower, x, y)};
  // A base of integers with an exponent of floats gives integers.
  const ElementType common =
      is_float(base) && !is_float(exponent) ? base
      : is_float(exponent)
          ? (is_float(base) && bit_width(base) > bit_width(exponent) ? base : exponent)
          : base;
  return {n.convert(n.binary(OpCode::kPower, n.convert(x, common), n.convert(y, common)), base)};
}

Values lower_bit_shift(OnnxLowering& n) {
  const std::string direction = n.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    bad_onnx("direction is '{}', expected LEFT or RIGHT", direction);
  const OpCode right = is_signed_integer(n.type_of(n.in(0))) ? OpCode::kShiftRightArithmetic
                                                             : OpCode::kShiftRightLogical;
  return {n.binary(direction == "LEFT" ? OpCode::kShiftLeft : right, n.in(0), n.in(1))};
}

Values lower_where(OnnxLowering& n) { return {n.select(n.in(0), n.in(1), n.in(2))}; }

// Bounds that are inputs, or attributes before version 11.
Values lower_clip(OnnxLowering& n) {
  Value x = n.in(0);
  if (n.has(1)) {
    x = n.max(x, n.in(1));
  } else if (n.has_attribute("min")) {
    x = n.max(x, n.real("min", 0));
  }
  if (n.has(2)) {
    x = n.min(x, n.in(2));
  } else if (n.has_attribute("max")) {
    x = n.min(x, n.real("max", 0));
  }
  return {x};
}

Values lower_identity(OnnxLowering& n) { return {n.in(0)}; }

Values lower_reciprocal(OnnxLowering& n) { return {n.div(n.like(n.in(0), 1), n.in(0))}; }

Values lower_is_nan(OnnxLowering& n) { return {n.compare(Direction::kNe, n.in(0), n.in(0))}; }

Values lower_is_inf(OnnxLowering& n) {
  const Value x = n.in(0);
  const ElementType type = n.type_of(x);
  if (!is_float(type) || !std::isinf(round_to(type, std::numeric_limits<double>::infinity()))) {
    return {n.splat(ElementType::kPred, n.dims_of(x), 0)};
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const bool positive = n.flag("detect_positive", true);
  const bool negative = n.flag("detect_negative", true);
  if (positive && negative) return {n.compare(Direction::kEq, n.abs(x), infinity)};
  if (!positive && !negative) return {n.splat(ElementType::kPred, n.dims_of(x), 0)};
  return {n.compare(Direction::kEq, x, positive ? infinity : -infinity)};
}

Values lower_sign(OnnxLowering& n) {
  const Value x = n.in(0);
  if (!is_unsigned_integer(n.type_of(x))) return {n.unary(OpCode::kSign, x)};
  return {n.convert(n.compare(Direction::kNe, x, 0), n.type_of(x))};
}

Values lower_abs(OnnxLowering& n) {
  return {is_unsigned_integer(n.type_of(n.in(0))) ? n.in(0) : n.abs(n.in(0))};
}

// --- Conversions

bool is_eight_bits(ElementType type) { return is_float(type) && bit_width(type) == 8; }

// Out of range, formats of eight bits take their greatest number unless `saturate` is 0; formats of
// four bits always do.
Value onnx_cast(const OnnxLowering& n, Value x, ElementType to, bool saturate) {
  const ElementType from = n.type_of(x);
  if (from == to) return x;
  if (is_pred(to)) return n.convert(x, to);
  const bool narrow = is_float(to) && bit_width(to) < 16;
  if (!narrow) {
    // Integers of fewer bits take the low bits of the integer.
    if (is_float(from) && is_integer(to) && bit_width(to) < 32) {
      return n.convert(n.convert(x, ElementType::kS32), to);
    }
    return n.convert(x, to);
  }
  if (to == ElementType::kF8E8M0FNU) {
    const std::string mode = n.text("round_mode", "up");
    Value wide = n.convert(x, ElementType::kF32);
    const Value bits = n.checked(
        n.builder().bitcast(n.abs(wide), Type(Shape(ElementType::kU32, n.dims_of(wide)))));
    const Value exponent =
        n.binary(OpCode::kShiftRightLogical, bits, n.number(ElementType::kU32, 23));
    const Value mantissa = n.binary(OpCode::kAnd, bits, n.number(ElementType::kU32, (1 << 23) - 1));
    Value up = n.compare(Direction::kGt, mantissa, 0);
    if (mode == "down") {
      up = n.splat(ElementType::kPred, n.dims_of(wide), 0);
    } else if (mode == "nearest") {
      up = n.compare(Direction::kGe, mantissa, 1 << 22);
    }
    const Value next = n.add(exponent, n.convert(up, ElementType::kU32));
    // 254 is the greatest exponent of a number; 255 is NaN, which f32's are as well.
    const Value limited = saturate ? n.min(next, 254) : n.min(next, 255);
    const Value is_nan = n.compare(Direction::kNe, wide, wide);
    const Value byte =
        n.convert(n.select(is_nan, n.number(ElementType::kU32, 255), limited), ElementType::kU8);
    return n.checked(n.builder().bitcast(byte, Type(Shape(to, n.dims_of(x)))));
  }
  if (!is_float(from)) x = n.convert(x, ElementType::kF32);
  if (saturate || !is_eight_bits(to)) {
    const double most = float_max(to);
    x = n.min(n.max(x, -most), most);
  }
  return n.convert(x, to);
}

Values lower_cast(OnnxLowering& n) {
  return {
      onnx_cast(n, n.in(0), n.type_attribute("to", ElementType::kF32), n.flag("saturate", true))};
}

Values lower_cast_like(OnnxLowering& n) {
  return {onnx_cast(n, n.in(0), n.type_of(n.in(1)), n.flag("saturate", true))};
}

Values lower_bit_cast(OnnxLowering& n) {
  const Value x = n.in(0);
  const ElementType to = n.type_attribute("to", n.type_of(x));
  if (is_pred(to) || is_pred(n.type_of(x))) {
    const Value byte = n.convert(x, ElementType::kU8);
    if (is_pred(to))
      return {n.convert(
          n.checked(n.builder().bitcast(x, Type(Shape(ElementType::kU8, n.dims_of(x))))), to)};
    return {n.checked(n.builder().bitcast(byte, Type(Shape(to, n.dims_of(x)))))};
  }
  if (bit_width(to) != bit_width(n.type_of(x)))
    bad_onnx("{} and {} differ in width", name_of(n.type_of(x)), name_of(to));
  return {n.checked(n.builder().bitcast(x, Type(Shape(to, n.dims_of(x)))))};
}

constexpr int64_t opcode_number(OpCode code) { return static_cast<int64_t>(code); }
constexpr int64_t direction_number(Direction direction) { return static_cast<int64_t>(direction); }

constexpr OnnxRow kElementwiseRows[] = {
    {"Abs", 6, lower_abs},
    {"Acos", 7, lower_unary, opcode_number(OpCode::kChloAcos)},
    {"Acosh", 9, lower_unary, opcode_number(OpCode::kChloAcosh)},
    {"Add", 7, lower_binary, opcode_number(OpCode::kAdd)},
    {"And", 7, lower_binary, opcode_number(OpCode::kAnd)},
    {"Asin", 7, lower_unary, opcode_number(OpCode::kChloAsin)},
    {"Asinh", 9, lower_unary, opcode_number(OpCode::kChloAsinh)},
    {"Atan", 7, lower_unary, opcode_number(OpCode::kChloAtan)},
    {"Atanh", 9, lower_unary, opcode_number(OpCode::kChloAtanh)},
    {"BitCast", 26, lower_bit_cast},
    {"BitShift", 11, lower_bit_shift},
    {"BitwiseAnd", 18, lower_binary, opcode_number(OpCode::kAnd)},
    {"BitwiseNot", 18, lower_unary, opcode_number(OpCode::kNot)},
    {"BitwiseOr", 18, lower_binary, opcode_number(OpCode::kOr)},
    {"BitwiseXor", 18, lower_binary, opcode_number(OpCode::kXor)},
    {"Cast", 6, lower_cast},
    {"CastLike", 15, lower_cast_like},
    {"Ceil", 6, lower_unary, opcode_number(OpCode::kCeil)},
    {"Clip", 6, lower_clip},
    {"Cos", 7, lower_unary, opcode_number(OpCode::kCosine)},
    {"Cosh", 9, lower_unary, opcode_number(OpCode::kChloCosh)},
    {"Div", 7, lower_binary, opcode_number(OpCode::kDivide)},
    {"Equal", 7, lower_compare, direction_number(Direction::kEq)},
    {"Erf", 9, lower_unary, opcode_number(OpCode::kChloErf)},
    {"Exp", 6, lower_unary, opcode_number(OpCode::kExponential)},
    {"Floor", 6, lower_unary, opcode_number(OpCode::kFloor)},
    {"Greater", 7, lower_compare, direction_number(Direction::kGt)},
    {"GreaterOrEqual", 12, lower_compare, direction_number(Direction::kGe)},
    {"Identity", 1, lower_identity},
    {"IsInf", 10, lower_is_inf},
    {"IsNaN", 9, lower_is_nan},
    {"Less", 7, lower_compare, direction_number(Direction::kLt)},
    {"LessOrEqual", 12, lower_compare, direction_number(Direction::kLe)},
    {"Log", 6, lower_unary, opcode_number(OpCode::kLog)},
    {"Max", 6, lower_many, opcode_number(OpCode::kMaximum)},
    {"Mean", 6, lower_mean_of_inputs},
    {"Min", 6, lower_many, opcode_number(OpCode::kMinimum)},
    {"Mod", 10, lower_mod},
    {"Mul", 7, lower_binary, opcode_number(OpCode::kMultiply)},
    {"Neg", 6, lower_unary, opcode_number(OpCode::kNegate)},
    {"Not", 1, lower_unary, opcode_number(OpCode::kNot)},
    {"Or", 7, lower_binary, opcode_number(OpCode::kOr)},
    {"Pow", 7, lower_pow},
    {"Reciprocal", 6, lower_reciprocal},
    {"Round", 11, lower_unary, opcode_number(OpCode::kRoundNearestEven)},
    {"Sigmoid", 6, lower_unary, opcode_number(OpCode::kLogistic)},
    {"Sign", 9, lower_sign},
    {"Sin", 7, lower_unary, opcode_number(OpCode::kSine)},
    {"Sinh", 9, lower_unary, opcode_number(OpCode::kChloSinh)},
    {"Sqrt", 6, lower_unary, opcode_number(OpCode::kSqrt)},
    {"Sub", 7, lower_binary, opcode_number(OpCode::kSubtract)},
    {"Sum", 6, lower_many, opcode_number(OpCode::kAdd)},
    {"Tan", 7, lower_unary, opcode_number(OpCode::kTan)},
    {"Tanh", 6, lower_unary, opcode_number(OpCode::kTanh)},
    {"Where", 9, lower_where},
    {"Xor", 7, lower_binary, opcode_number(OpCode::kXor)},
};

}  // namespace

std::span<const OnnxRow> onnx_elementwise_rows() { return kElementwiseRows; }

}  // namespace tenon::hlo
