// Elementwise ops on real numbers, integers and pred.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/types/float_convert.h"
#include "hlo/lower/elements/bit_patterns.h"
#include "hlo/lower/elements/rules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;

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
  // For zeros and NaNs, sign(x) is x.
  const ValueId rest = is_float(type) ? x : zero;
  const ValueId not_greater =
      is_unsigned_integer(type) ? rest : b.select(b.compare(K::kLt, x, zero), number(-1), rest);
  return b.select(b.compare(K::kGt, x, zero), number(1), not_greater);
}

// By repeated squaring; with a negative exponent only powers of 1 and -1 are nonzero.
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
  // In a type without infinity these bits are a NaN, which is unequal to everything.
  const ValueId infinity = b.real(type, HUGE_VAL);
  const bool has_infinity = std::isinf(round_to(type, HUGE_VAL));
  if (!has_infinity) return number;
  return b.logical_and(number, b.compare(K::kNe, b.unary(K::kAbs, x), infinity));
}

// A signed integer that orders all floats, including NaNs and signed zeros.
ValueId total_order_key(Builder& b, ValueId x, ElementType type) {
  const std::optional<ElementType> same_width = integer_of_width(bit_width(type), true);
  // There is not an integer type of six bits, and f8E8M0FNU has no sign: both are ordered by their
  // values in f32.
  if (!same_width || !has_sign(type))
    return total_order_key(b, b.convert(x, ElementType::kF32), ElementType::kF32);
  const ElementType integer = *same_width;
  const ValueId bits = b.bitcast(x, integer);
  const ValueId sign = b.binary(K::kSar, bits, b.integer(integer, bit_width(type) - 1));
  // Flips all bits of negative numbers except the sign.
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
    // Infinity and NaNs share one exponent, or are only the last bit pattern.
    const double below = decode_float(type, bits - 1);
    const uint64_t exponent = element_type_info(type).format.mantissa_bits;
    bits = std::isfinite(below) ? bits - 1 : (bits >> exponent << exponent) - 1;
  }
  return bits;
}

// Rounds a float to fewer bits. The mantissa is rounded to nearest even. Then, if the new format
// has fewer exponent bits than the type, overflows become infinity, and numbers below the least
// normal number of the new format become zero.
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
  // Rounding up may overflow the type.
  ValueId overflows = b.compare(K::kGt, rounded, number(greatest_finite(type)));
  if (exponent_bits < format.exponent_bits) {
    const int64_t bias = (int64_t{1} << (exponent_bits - 1)) - 1;
    // A mantissa that overflowed has incremented the exponent: one comparison detects both.
    const auto most = static_cast<uint64_t>(format.bias + bias + 1) << format.mantissa_bits;
    const auto least = static_cast<uint64_t>(format.bias - bias + 1) << format.mantissa_bits;
    overflows = b.logical_or(overflows, b.compare(K::kGe, rounded, number(most)));
    rounded = b.select(b.compare(K::kLt, rounded, number(least)), number(0), rounded);
  }
  const bool has_negative_zero = format.specials != FloatSpecials::kUnsignedZero;
  const ValueId kept_sign =
      has_negative_zero ? sign : b.select(b.compare(K::kEq, rounded, number(0)), number(0), sign);
  const ValueId kept = from_bits(b, b.logical_or(rounded, kept_sign), type);
  // The type's value for infinity, with the number's sign.
  const ValueId positive = b.compare(K::kEq, sign, number(0));
  const ValueId infinity = b.select(positive, b.real(type, HUGE_VAL), b.real(type, -HUGE_VAL));
  // Infinities and NaNs stay; in a format without a mantissa, which has no NaN, a NaN becomes
  // infinity.
  const ValueId is_nan = b.compare(K::kNe, x, x);
  const ValueId nan = mantissa_bits > 0 ? x : infinity;
  const bool has_infinity = std::isinf(round_to(type, HUGE_VAL));
  const ValueId is_infinite =
      has_infinity ? b.compare(K::kEq, b.unary(K::kAbs, x), b.real(type, HUGE_VAL)) : b.pred(false);
  return b.select(is_nan, nan, b.select(is_infinite, x, b.select(overflows, infinity, kept)));
}

ValueId reduce_precision(ElementEmitter& e, const Instruction& op, ValueId x, ElementType type) {
  // A type without a sign is computed in f32, which represents all its numbers.
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

// --- Rules with more than one operation

using E = ElementEmitter;
using Op = Instruction;

ElementType operand_element(const Op& op) { return op.operand_type(0).element_type(); }

// In a type without a sign, each number is its own magnitude.
Elements abs_numbers(E& e, const Op& op, const Elements& x) {
  const ElementType type = operand_element(op);
  if (is_unsigned_integer(type) || is_pred(type)) return {x[0]};
  return {{e.b.unary(K::kAbs, x[0].re)}};
}
Elements clamp_numbers(E& e, const Op& op, const Elements& x) {
  return {{clamp(e.b, x[0].re, x[1].re, x[2].re, op.result_type().element_type())}};
}
Elements compare_numbers(E& e, const Op& op, const Elements& x) {
  return {{compare(e.b, op, x[0].re, x[1].re, operand_element(op))}};
}
Elements convert_numbers(E& e, const Op& op, const Elements& x) {
  return {e.convert(x[0], operand_element(op), op.result_type().element_type())};
}
Elements imag_numbers(E& e, const Op& op, const Elements&) {
  return {e.constant(operand_element(op), 0)};
}
Elements is_finite_numbers(E& e, const Op& op, const Elements& x) {
  return {{is_finite(e.b, x[0].re, operand_element(op))}};
}
Elements power_numbers(E& e, const Op& op, const Elements& x) {
  const ElementType type = operand_element(op);
  return {{is_float(type) ? e.b.binary(K::kPow, x[0].re, x[1].re)
                          : integer_power(e.b, x[0].re, x[1].re, type)}};
}
Elements real_numbers(E&, const Op&, const Elements& x) { return {x[0]}; }
Elements reduce_precision_numbers(E& e, const Op& op, const Elements& x) {
  return {{reduce_precision(e, op, x[0].re, operand_element(op))}};
}
Elements select_numbers(E& e, const Op&, const Elements& x) {
  return {{e.b.select(x[0].re, x[1].re, x[2].re)}};
}
Elements sign_numbers(E& e, const Op& op, const Elements& x) {
  return {{sign(e.b, x[0].re, operand_element(op))}};
}
// A region applied to the operands' elements.
Elements map_at(E& e, const Op& op, const Values& index) {
  Elements arguments;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    arguments.push_back(e.element(op.operand(i), index));
  }
  return e.call(op.region(0), arguments);
}

}  // namespace

namespace emit {

constinit const ElementRule abs = {.numbers = abs_numbers, .complex = complex_rules::abs};
constinit const ElementRule add = {
    .operation = K::kAdd, .on_truth = K::kOr, .complex = complex_rules::add};
constinit const ElementRule atan2 = {.operation = K::kAtan2, .complex = complex_rules::atan2};
constinit const ElementRule bit_and = {.operation = K::kAnd};
constinit const ElementRule bit_or = {.operation = K::kOr};
constinit const ElementRule bit_xor = {.operation = K::kXor};
constinit const ElementRule cbrt = {.operation = K::kCbrt, .complex = complex_rules::cbrt};
constinit const ElementRule ceil = {.operation = K::kCeil};
constinit const ElementRule clamp = {.numbers = clamp_numbers, .complex = complex_rules::clamp};
constinit const ElementRule compare = {.numbers = compare_numbers,
                                       .complex = complex_rules::compare};
constinit const ElementRule complex = {.complex = complex_rules::complex};
constinit const ElementRule convert = {.numbers = convert_numbers,
                                       .complex = complex_rules::convert};
constinit const ElementRule cosine = {.operation = K::kCos, .complex = complex_rules::cosine};
constinit const ElementRule count_leading_zeros = {.operation = K::kClz};
constinit const ElementRule divide = {.operation = K::kDiv, .complex = complex_rules::divide};
constinit const ElementRule erf = {.operation = K::kErf};
constinit const ElementRule erfc = {.operation = K::kErfc};
constinit const ElementRule exponential = {.operation = K::kExp,
                                           .complex = complex_rules::exponential};
constinit const ElementRule exponential_minus_one = {
    .operation = K::kExpm1, .complex = complex_rules::exponential_minus_one};
constinit const ElementRule floor = {.operation = K::kFloor};
constinit const ElementRule imag = {.numbers = imag_numbers, .complex = complex_rules::imag};
constinit const ElementRule is_finite = {.numbers = is_finite_numbers};
constinit const ElementRule log = {.operation = K::kLog, .complex = complex_rules::log};
constinit const ElementRule log_plus_one = {.operation = K::kLog1p,
                                            .complex = complex_rules::log_plus_one};
constinit const ElementRule logistic = {.operation = K::kLogistic,
                                        .complex = complex_rules::logistic};
constinit const ElementRule map = {.at = map_at};
constinit const ElementRule maximum = {
    .operation = K::kMax, .on_truth = K::kOr, .complex = complex_rules::maximum};
constinit const ElementRule minimum = {
    .operation = K::kMin, .on_truth = K::kAnd, .complex = complex_rules::minimum};
constinit const ElementRule mulhi = {.operation = K::kMulHi};
constinit const ElementRule multiply = {
    .operation = K::kMul, .on_truth = K::kAnd, .complex = complex_rules::multiply};
constinit const ElementRule negate = {.operation = K::kNeg, .complex = complex_rules::negate};
constinit const ElementRule not_ = {.operation = K::kNot};
constinit const ElementRule popcnt = {.operation = K::kPopcount};
constinit const ElementRule power = {.numbers = power_numbers, .complex = complex_rules::power};
constinit const ElementRule real = {.numbers = real_numbers, .complex = complex_rules::real};
constinit const ElementRule reduce_precision = {.numbers = reduce_precision_numbers};
constinit const ElementRule remainder = {.operation = K::kRem, .complex = complex_rules::remainder};
constinit const ElementRule round_nearest_afz = {.operation = K::kRoundAway};
constinit const ElementRule round_nearest_even = {.operation = K::kRoundEven};
constinit const ElementRule rsqrt = {.operation = K::kRsqrt, .complex = complex_rules::rsqrt};
constinit const ElementRule select = {.numbers = select_numbers, .complex = complex_rules::select};
constinit const ElementRule shift_left = {.operation = K::kShl};
constinit const ElementRule shift_right_arithmetic = {.operation = K::kSar};
constinit const ElementRule shift_right_logical = {.operation = K::kShr};
constinit const ElementRule sign = {.numbers = sign_numbers, .complex = complex_rules::sign};
constinit const ElementRule sine = {.operation = K::kSin, .complex = complex_rules::sine};
constinit const ElementRule sqrt = {.operation = K::kSqrt, .complex = complex_rules::sqrt};
constinit const ElementRule subtract = {.operation = K::kSub, .complex = complex_rules::subtract};
constinit const ElementRule tan = {.operation = K::kTan, .complex = complex_rules::tan};
constinit const ElementRule tanh = {.operation = K::kTanh, .complex = complex_rules::tanh};

}  // namespace emit

Elements emit_elementwise(ElementEmitter& e, const ElementRule& rule, const Instruction& op,
                          const Elements& operands) {
  if (rule.numbers != nullptr) return rule.numbers(e, op, operands);
  const bool truth = is_pred(op.operand_type(0).element_type());
  const std::optional<K> operation = truth && rule.on_truth ? rule.on_truth : rule.operation;
  if (!operation) {
    e.fail(op, "there is no lowering");
    return {};
  }
  Values values;
  for (const Element& operand : operands) values.push_back(operand.re);
  return {{e.b.op(*operation, values)}};
}

}  // namespace tenon::hlo::lower
