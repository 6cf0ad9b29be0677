// Elementwise ops on real numbers, integers and pred.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/types/float_convert.h"
#include "hlo/lower/elements/bit_patterns.h"
#include "hlo/lower/elements/emitter.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using K = kernel::OpCode;

// Ops that are one operation of the kernel IR on every type they have.
std::optional<K> same_operation(OpCode code) {
  switch (code) {
    case OpCode::kAbs:
      return K::kAbs;
    case OpCode::kAdd:
      return K::kAdd;
    case OpCode::kAnd:
      return K::kAnd;
    case OpCode::kAtan2:
      return K::kAtan2;
    case OpCode::kCbrt:
      return K::kCbrt;
    case OpCode::kCeil:
      return K::kCeil;
    case OpCode::kChloMulhi:
      return K::kMulHi;
    case OpCode::kCosine:
      return K::kCos;
    case OpCode::kCountLeadingZeros:
      return K::kClz;
    case OpCode::kDivide:
      return K::kDiv;
    case OpCode::kExponential:
      return K::kExp;
    case OpCode::kExponentialMinusOne:
      return K::kExpm1;
    case OpCode::kFloor:
      return K::kFloor;
    case OpCode::kLog:
      return K::kLog;
    case OpCode::kLogPlusOne:
      return K::kLog1p;
    case OpCode::kLogistic:
      return K::kLogistic;
    case OpCode::kMaximum:
      return K::kMax;
    case OpCode::kMinimum:
      return K::kMin;
    case OpCode::kMultiply:
      return K::kMul;
    case OpCode::kNegate:
      return K::kNeg;
    case OpCode::kNot:
      return K::kNot;
    case OpCode::kOr:
      return K::kOr;
    case OpCode::kPopcnt:
      return K::kPopcount;
    case OpCode::kRemainder:
      return K::kRem;
    case OpCode::kRoundNearestAfz:
      return K::kRoundAway;
    case OpCode::kRoundNearestEven:
      return K::kRoundEven;
    case OpCode::kRsqrt:
      return K::kRsqrt;
    case OpCode::kShiftLeft:
      return K::kShl;
    case OpCode::kShiftRightArithmetic:
      return K::kSar;
    case OpCode::kShiftRightLogical:
      return K::kShr;
    case OpCode::kSine:
      return K::kSin;
    case OpCode::kSqrt:
      return K::kSqrt;
    case OpCode::kSubtract:
      return K::kSub;
    case OpCode::kTan:
      return K::kTan;
    case OpCode::kTanh:
      return K::kTanh;
    case OpCode::kXor:
      return K::kXor;
    default:
      return std::nullopt;
  }
}

// On truth values sums and maxima are "or", products and minima "and".
std::optional<K> pred_operation(OpCode code) {
  switch (code) {
    case OpCode::kAdd:
    case OpCode::kMaximum:
      return K::kOr;
    case OpCode::kMultiply:
    case OpCode::kMinimum:
      return K::kAnd;
    default:
      return same_operation(code);
  }
}

// f8E8M0FNU has neither sign nor zero.
bool has_sign(ElementType type) {
  return element_type_info(type).format.specials != FloatSpecials::kExponentOnly;
}

ValueId sign(Builder& b, ValueId x, ElementType type) {
  if (is_float(type) && !has_sign(type)) {
    return b.select(b.compare(K::kNe, x, x), x, b.real(type, 1));
  }
  const auto number = [&](int value) {
    return is_float(type) ? b.real(type, value) : b.integer(type, value);
  };
  const ValueId zero = number(0);
  // Zeros and NaNs are their own sign.
  const ValueId rest = is_float(type) ? x : zero;
  const ValueId not_greater =
      is_unsigned_integer(type) ? rest : b.select(b.compare(K::kLt, x, zero), number(-1), rest);
  return b.select(b.compare(K::kGt, x, zero), number(1), not_greater);
}

// By squaring; a negative exponent leaves only the powers of 1 and -1.
ValueId integer_power(Builder& b, ValueId x, ValueId y, ElementType type) {
  const int width = bit_width(type);
  const ValueId one = b.integer(type, 1);
  const Values loop =
      b.for_loop(b.index(0), b.index(width), 1, {one, x, y}, [&](const Values& arguments) {
        const ValueId odd = b.compare(K::kNe, b.logical_and(arguments[3], one), b.integer(type, 0));
        const ValueId product = b.mul(arguments[1], arguments[2]);
        return Values{b.select(odd, product, arguments[1]), b.mul(arguments[2], arguments[2]),
                      b.binary(K::kShr, arguments[3], one)};
      });
  if (!is_signed_integer(type)) return loop[0];
  const ValueId minus_one = b.integer(type, -1);
  const ValueId odd = b.compare(K::kNe, b.logical_and(y, one), b.integer(type, 0));
  const ValueId of_minus_one =
      b.select(b.compare(K::kEq, x, minus_one), b.select(odd, minus_one, one), b.integer(type, 0));
  const ValueId negative = b.select(b.compare(K::kEq, x, one), one, of_minus_one);
  return b.select(b.compare(K::kLt, y, b.integer(type, 0)), negative, loop[0]);
}

ValueId is_finite(Builder& b, ValueId x, ElementType type) {
  const ValueId number = b.compare(K::kEq, x, x);
  // In a type without infinity its bits are a NaN, which is unequal to everything.
  const ValueId infinity = b.real(type, HUGE_VAL);
  const bool has_infinity = std::isinf(round_to(type, HUGE_VAL));
  if (!has_infinity) return number;
  return b.logical_and(number, b.compare(K::kNe, b.unary(K::kAbs, x), infinity));
}

// A signed integer that orders all floats, NaNs and signed zeros too.
ValueId total_order_key(Builder& b, ValueId x, ElementType type) {
  const std::optional<ElementType> same_width = integer_of_width(bit_width(type), true);
  // Six bits have no integers, f8E8M0FNU no sign: their values keep their order in f32.
  if (!same_width || !has_sign(type))
    return total_order_key(b, b.convert(x, ElementType::kF32), ElementType::kF32);
  const ElementType integer = *same_width;
  const ValueId bits = b.bitcast(x, integer);
  const ValueId sign = b.binary(K::kSar, bits, b.integer(integer, bit_width(type) - 1));
  // Flips all bits but the sign of negative numbers.
  return b.binary(K::kXor, bits, b.binary(K::kShr, sign, b.integer(integer, 1)));
}

K comparison(ComparisonDirection direction) {
  switch (direction) {
    case ComparisonDirection::kEq:
      return K::kEq;
    case ComparisonDirection::kNe:
      return K::kNe;
    case ComparisonDirection::kGe:
      return K::kGe;
    case ComparisonDirection::kGt:
      return K::kGt;
    case ComparisonDirection::kLe:
      return K::kLe;
    case ComparisonDirection::kLt:
      return K::kLt;
  }
  return K::kEq;
}

ValueId compare(Builder& b, const Instruction& op, ValueId x, ValueId y, ElementType type) {
  const auto direction = op.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
  if (op.enumeration<ComparisonType>(AttrKey::compare_type) == ComparisonType::kTotalOrder &&
      is_float(type)) {
    x = total_order_key(b, x, type);
    y = total_order_key(b, y, type);
  }
  return b.compare(comparison(direction), x, y);
}

// The bits of the greatest number.
uint64_t greatest_finite(ElementType type) {
  uint64_t bits = (uint64_t{1} << (bit_width(type) - 1)) - 1;
  while (!std::isfinite(decode_float(type, bits))) {
    // Infinity and NaNs have one exponent, or are the last one.
    const double below = decode_float(type, bits - 1);
    const uint64_t exponent = element_type_info(type).format.mantissa_bits;
    bits = std::isfinite(below) ? bits - 1 : (bits >> exponent << exponent) - 1;
  }
  return bits;
}

// Rounds a float to fewer bits: nearest even on the mantissa as stored; then, if the new format has
// fewer exponent bits than the type, overflows become infinity, and numbers below the least normal
// number of the new format become zero.
ValueId reduce_bits(Builder& b, ValueId x, ElementType type, int64_t exponent_bits,
                    int64_t mantissa_bits) {
  const FloatFormat& format = element_type_info(type).format;
  const int width = bit_width(type);
  const ElementType integer = bits_type(type);
  const auto number = [&](uint64_t value) {
    return b.integer(integer, static_cast<int64_t>(value));
  };
  const uint64_t sign_mask = uint64_t{1} << (width - 1);
  const ValueId bits = bits_of(b, x);
  const ValueId sign = b.logical_and(bits, number(sign_mask));
  ValueId rounded = b.logical_and(bits, number(sign_mask - 1));
  const int64_t dropped = format.mantissa_bits - mantissa_bits;
  if (dropped > 0) {
    const uint64_t last = uint64_t{1} << dropped;
    const ValueId by = number(static_cast<uint64_t>(dropped));
    const ValueId odd = b.logical_and(b.binary(K::kShr, rounded, by), number(1));
    rounded = b.add(rounded, b.add(number(last / 2 - 1), odd));
    rounded = b.logical_and(rounded, number(~(last - 1)));
  }
  // Rounding up may leave the type's own numbers.
  ValueId overflows = b.compare(K::kGt, rounded, number(greatest_finite(type)));
  if (exponent_bits < format.exponent_bits) {
    const int64_t bias = (int64_t{1} << (exponent_bits - 1)) - 1;
    // The mantissa that overflowed has raised the exponent: one comparison tells both.
    const auto most = static_cast<uint64_t>(format.bias + bias + 1) << format.mantissa_bits;
    const auto least = static_cast<uint64_t>(format.bias - bias + 1) << format.mantissa_bits;
    overflows = b.logical_or(overflows, b.compare(K::kGe, rounded, number(most)));
    rounded = b.select(b.compare(K::kLt, rounded, number(least)), number(0), rounded);
  }
  const ValueId kept = from_bits(b, b.logical_or(rounded, sign), type);
  // The type's value for infinity, with the number's sign.
  const ValueId positive = b.compare(K::kEq, sign, number(0));
  const ValueId infinity = b.select(positive, b.real(type, HUGE_VAL), b.real(type, -HUGE_VAL));
  // Infinities stay, and so do NaNs; a format without a mantissa has no NaN: it becomes infinity.
  const ValueId is_nan = b.compare(K::kNe, x, x);
  const ValueId nan = mantissa_bits > 0 ? x : infinity;
  const bool has_infinity = std::isinf(round_to(type, HUGE_VAL));
  const ValueId is_infinite =
      has_infinity ? b.compare(K::kEq, b.unary(K::kAbs, x), b.real(type, HUGE_VAL)) : b.pred(false);
  return b.select(is_nan, nan, b.select(is_infinite, x, b.select(overflows, infinity, kept)));
}

ValueId reduce_precision(ElementEmitter& e, const Instruction& op, ValueId x, ElementType type) {
  // A type without a sign is computed in f32, which holds all its numbers.
  const ElementType working = has_sign(type) ? type : ElementType::kF32;
  const ValueId reduced =
      reduce_bits(e.b, e.b.convert(x, working), working, op.integer(AttrKey::exponent_bits),
                  op.integer(AttrKey::mantissa_bits));
  return e.b.convert(reduced, type);
}

ValueId clamp(Builder& b, ValueId low, ValueId x, ValueId high, ElementType type) {
  if (is_pred(type)) return b.logical_and(b.logical_or(x, low), high);
  return b.min(b.max(x, low), high);
}

}  // namespace

Elements emit_elementwise(ElementEmitter& e, const Instruction& op, const Elements& operands) {
  Builder& b = e.b;
  const ElementType type = op.operand_type(0).element_type();
  const auto x = [&](size_t i) { return operands[i].re; };
  const std::optional<K> same =
      is_pred(type) ? pred_operation(op.code()) : same_operation(op.code());
  if (same) {
    // abs of a number without a sign.
    if (*same == K::kAbs && (is_unsigned_integer(type) || is_pred(type))) return {operands[0]};
    Values values;
    for (const Element& operand : operands) values.push_back(operand.re);
    return {{b.op(*same, values)}};
  }
  switch (op.code()) {
    case OpCode::kClamp:
      return {{clamp(b, x(0), x(1), x(2), op.result_type().element_type())}};
    case OpCode::kCompare:
      return {{compare(b, op, x(0), x(1), type)}};
    case OpCode::kConvert:
      return {e.convert(operands[0], type, op.result_type().element_type())};
    case OpCode::kImag:
      return {e.constant(type, 0)};
    case OpCode::kIsFinite:
      return {{is_finite(b, x(0), type)}};
    case OpCode::kPower:
      return {
          {is_float(type) ? b.binary(K::kPow, x(0), x(1)) : integer_power(b, x(0), x(1), type)}};
    case OpCode::kReal:
      return {operands[0]};
    case OpCode::kReducePrecision:
      return {{reduce_precision(e, op, x(0), type)}};
    case OpCode::kSelect:
      return {{b.select(x(0), x(1), x(2))}};
    case OpCode::kSign:
      return {{sign(b, x(0), type)}};
    default:
      e.fail(op, "there is no lowering");
      return {};
  }
}

}  // namespace tenon::hlo::lower
