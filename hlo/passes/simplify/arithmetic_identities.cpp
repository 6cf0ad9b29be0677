#include <utility>

#include "hlo/passes/simplify/constants.h"
#include "hlo/passes/simplify/identities.h"

namespace tenon::hlo {
namespace {

ElementType type_of(const Instruction& op) { return op.operand_type(0).element_type(); }
bool is_whole(ElementType type) { return is_integer(type) || is_pred(type); }

// The other operand where one of the two `holds`.
template <class Holds>
Value other_if(const Instruction& op, const Holds& holds) {
  if (holds(op.operand(1))) return op.operand(0);
  if (holds(op.operand(0))) return op.operand(1);
  return {};
}

Value truth(Builder& b, const Instruction& op, bool value) {
  DenseAttr dense = DenseAttr::splat(op.result_type().shape(),
                                     Literal::scalar_integer(ElementType::kPred, value ? 1 : 0));
  return b.constant(std::move(dense));
}

Value zero(Builder& b, const Instruction& op) {
  const ElementType type = op.result_type().element_type();
  return b.constant(DenseAttr::splat(op.result_type().shape(), Literal::scalar_integer(type, 0)));
}

// --- Sums and products

Value add_nothing(Builder&, Instruction& op) {
  const double nothing = is_float(type_of(op)) ? -0.0 : 0.0;
  return other_if(op, [&](Value x) { return is_number(x, nothing); });
}
Value subtract_nothing(Builder&, Instruction& op) {
  return is_number(op.operand(1), 0.0) ? op.operand(0) : Value();
}
Value subtract_itself(Builder& b, Instruction& op) {
  const bool same = is_integer(type_of(op)) && op.operand(0) == op.operand(1);
  return same ? zero(b, op) : Value();
}
Value multiply_by_one(Builder&, Instruction& op) {
  return other_if(op, [](Value x) { return is_number(x, 1.0); });
}
Value multiply_by_zero(Builder& b, Instruction& op) {
  const bool nothing = is_whole(type_of(op)) &&
                       other_if(op, [](Value x) { return is_number(x, 0.0); }).def != nullptr;
  return nothing ? zero(b, op) : Value();
}
Value divide_by_one(Builder&, Instruction& op) {
  return is_number(op.operand(1), 1.0) ? op.operand(0) : Value();
}
Value power_of_one(Builder&, Instruction& op) {
  const bool whole = is_integer(type_of(op));
  return whole && is_number(op.operand(1), 1.0) ? op.operand(0) : Value();
}

// --- Bits

Value of_itself(Builder&, Instruction& op) {
  return op.operand(0) == op.operand(1) ? op.operand(0) : Value();
}
Value xor_itself(Builder& b, Instruction& op) {
  return op.operand(0) == op.operand(1) ? zero(b, op) : Value();
}
Value with_no_bits(Builder&, Instruction& op) {
  return other_if(op, [](Value x) { return is_number(x, 0.0); });
}
Value with_all_bits(Builder&, Instruction& op) { return other_if(op, is_all_ones); }
// The operand that decides alone.
Value and_no_bits(Builder&, Instruction& op) {
  for (const size_t i : {0u, 1u}) {
    if (is_number(op.operand(i), 0.0)) return op.operand(i);
  }
  return {};
}
Value or_all_bits(Builder&, Instruction& op) {
  for (const size_t i : {0u, 1u}) {
    if (is_all_ones(op.operand(i))) return op.operand(i);
  }
  return {};
}
Value shift_by_none(Builder&, Instruction& op) {
  return is_number(op.operand(1), 0.0) ? op.operand(0) : Value();
}

// --- Signs

bool has_sign(ElementType type) {
  return !is_float(type) || element_type_info(type).format.specials != FloatSpecials::kExponentOnly;
}

Value twice(Builder&, Instruction& op) {
  const Instruction& inner = *op.operand(0).def;
  return inner.code() == op.code() ? inner.operand(0) : Value();
}
// Of what has no sign the negative is NaN.
Value negative_twice(Builder& b, Instruction& op) {
  return has_sign(type_of(op)) ? twice(b, op) : Value();
}
Value once(Builder&, Instruction& op) {
  return op.operand(0).def->code() == op.code() ? op.operand(0) : Value();
}
Value abs_of_negative(Builder& b, Instruction& op) {
  const Instruction& inner = *op.operand(0).def;
  const bool real = !is_complex(type_of(op)) && has_sign(type_of(op));
  return real && inner.code() == OpCode::kNegate ? b.abs(inner.operand(0)) : Value();
}

// --- Choices

Value select_of_one(Builder&, Instruction& op) {
  return op.operand(1) == op.operand(2) ? op.operand(1) : Value();
}
Value select_by_constant(Builder&, Instruction& op) {
  const Literal* predicate = splat_of(op.operand(0));
  if (predicate == nullptr) return {};
  return op.operand(predicate->get_integer(0) != 0 ? 1 : 2);
}
Value select_by_not(Builder& b, Instruction& op) {
  const Instruction& inner = *op.operand(0).def;
  if (inner.code() != OpCode::kNot) return {};
  return b.select(inner.operand(0), op.operand(2), op.operand(1));
}

// --- Comparisons

using Direction = ComparisonDirection;

Direction direction_of(const Instruction& op) {
  return op.enumeration<Direction>(AttrKey::comparison_direction);
}

Value compare_with_itself(Builder& b, Instruction& op) {
  if (!is_whole(type_of(op)) || op.operand(0) != op.operand(1)) return {};
  const Direction direction = direction_of(op);
  return truth(
      b, op,
      direction == Direction::kEq || direction == Direction::kGe || direction == Direction::kLe);
}
Value compare_unsigned_with_zero(Builder& b, Instruction& op) {
  if (!is_unsigned_integer(type_of(op))) return {};
  const Direction direction = direction_of(op);
  if (is_number(op.operand(1), 0.0)) {
    if (direction == Direction::kLt) return truth(b, op, false);
    if (direction == Direction::kGe) return truth(b, op, true);
  } else if (is_number(op.operand(0), 0.0)) {
    if (direction == Direction::kGt) return truth(b, op, false);
    if (direction == Direction::kLe) return truth(b, op, true);
  }
  return {};
}
Value compare_with_truth(Builder&, Instruction& op) {
  if (!is_pred(type_of(op))) return {};
  const Direction direction = direction_of(op);
  const bool equals_true = direction == Direction::kEq;
  if (!equals_true && direction != Direction::kNe) return {};
  return other_if(op, [&](Value x) { return is_number(x, equals_true ? 1.0 : 0.0); });
}

// --- Conversions

Value convert_to_same(Builder&, Instruction& op) { return op.operand(0); }

// Whether every number of one type is one of the other.
bool holds_all(ElementType wide, ElementType narrow) {
  if (wide == narrow) return true;
  if (is_pred(narrow)) return is_integer(wide) || (is_float(wide) && bit_width(wide) >= 16);
  if (is_integer(narrow)) {
    const int bits = bit_width(narrow) - (is_signed_integer(narrow) ? 1 : 0);
    if (is_float(wide)) {
      const FloatFormat& format = element_type_info(wide).format;
      const bool range = bits < (1 << (format.exponent_bits - 1));
      return format.specials == FloatSpecials::kIeee && bits <= format.mantissa_bits + 1 && range;
    }
    if (!is_integer(wide)) return false;
    const bool sign = is_signed_integer(wide);
    return bits <= bit_width(wide) - (sign ? 1 : 0) && (sign || !is_signed_integer(narrow));
  }
  if (!is_float(narrow) || !is_float(wide)) return false;
  const FloatFormat& from = element_type_info(narrow).format;
  const FloatFormat& to = element_type_info(wide).format;
  return from.specials == FloatSpecials::kIeee && to.specials == FloatSpecials::kIeee &&
         from.mantissa_bits <= to.mantissa_bits && from.exponent_bits <= to.exponent_bits;
}

Value convert_through_wider(Builder& b, Instruction& op) {
  const Instruction& inner = *op.operand(0).def;
  if (inner.code() != OpCode::kConvert || !is_plain(inner.operand_type(0))) return {};
  const Value x = inner.operand(0);
  const ElementType first = x.type().element_type();
  if (is_complex(first) || !holds_all(inner.result_type().element_type(), first)) return {};
  const ElementType last = op.result_type().element_type();
  // Between integers what does not fit wraps; from a float it is the nearest end.
  const bool saturates = is_integer(first) && is_float(inner.result_type().element_type()) &&
                         is_integer(last) && !holds_all(last, first);
  if (saturates) return {};
  return last == first ? x : b.convert(x, last);
}

Value bitcast_to_same(Builder&, Instruction& op) { return op.operand(0); }

// A null value is no answer, and one of another type than the result none either.
// clang-format off
constexpr Identity kIdentities[] = {
    {OpCode::kAdd, "x + 0 = x", "of floats -0.0 alone: it leaves -0.0 as it is, 0.0 would not", add_nothing},
    {OpCode::kSubtract, "x - 0 = x", "of floats 0.0 alone: -0.0 - 0.0 is -0.0", subtract_nothing},
    {OpCode::kSubtract, "x - x = 0", "of integers: floats may be infinite or NaN", subtract_itself},
    {OpCode::kMultiply, "x * 1 = x", "exact, signs and infinities as they are", multiply_by_one},
    {OpCode::kMultiply, "x * 0 = 0", "of integers: floats may be negative, infinite or NaN", multiply_by_zero},
    {OpCode::kDivide, "x / 1 = x", "exact, of integers too", divide_by_one},
    {OpCode::kPower, "x ^ 1 = x", "of integers", power_of_one},
    {OpCode::kMaximum, "max(x, x) = x", "a NaN stays one", of_itself},
    {OpCode::kMinimum, "min(x, x) = x", "a NaN stays one", of_itself},
    {OpCode::kAnd, "x and x = x", "bit by bit", of_itself},
    {OpCode::kAnd, "x and 0 = 0", "bit by bit", and_no_bits},
    {OpCode::kAnd, "x and ones = x", "bit by bit", with_all_bits},
    {OpCode::kOr, "x or x = x", "bit by bit", of_itself},
    {OpCode::kOr, "x or 0 = x", "bit by bit", with_no_bits},
    {OpCode::kOr, "x or ones = ones", "bit by bit", or_all_bits},
    {OpCode::kXor, "x xor 0 = x", "bit by bit", with_no_bits},
    {OpCode::kXor, "x xor x = 0", "bit by bit", xor_itself},
    {OpCode::kShiftLeft, "x << 0 = x", "no bit moves", shift_by_none},
    {OpCode::kShiftRightLogical, "x >> 0 = x", "no bit moves", shift_by_none},
    {OpCode::kShiftRightArithmetic, "x >> 0 = x", "no bit moves", shift_by_none},
    {OpCode::kNegate, "-(-x) = x", "the sign turns twice, where there is one; integers wrap both times", negative_twice},
    {OpCode::kNot, "not not x = x", "bit by bit", twice},
    {OpCode::kAbs, "||x|| = |x|", "what has no sign keeps none; the least integer is its own", once},
    {OpCode::kAbs, "|-x| = |x|", "of reals that have a sign; the least integer is its own negative", abs_of_negative},
    {OpCode::kFloor, "floor(floor(x)) = floor(x)", "a whole number is its own", once},
    {OpCode::kCeil, "ceil(ceil(x)) = ceil(x)", "a whole number is its own", once},
    {OpCode::kSelect, "select(p, x, x) = x", "both ways", select_of_one},
    {OpCode::kSelect, "select(true, x, y) = x", "the choice is known", select_by_constant},
    {OpCode::kSelect, "select(not p, x, y) = select(p, y, x)", "the other way round", select_by_not},
    {OpCode::kCompare, "x = x is true", "of integers and pred: a NaN is not equal to itself", compare_with_itself},
    {OpCode::kCompare, "x < 0 is false", "of unsigned integers; so 0 > x, and x >= 0, 0 <= x are true", compare_unsigned_with_zero},
    {OpCode::kCompare, "p = true is p", "of pred; so p != false", compare_with_truth},
    {OpCode::kConvert, "convert(x) = x", "to its own type", convert_to_same},
    {OpCode::kConvert, "convert(convert(x)) = convert(x)", "the type between holds every number of the first, and the last one stops at its ends where it did", convert_through_wider},
    {OpCode::kBitcastConvert, "bitcast_convert(x) = x", "to its own type", bitcast_to_same},
};
// clang-format on

}  // namespace

std::span<const Identity> arithmetic_identities() { return kIdentities; }

}  // namespace tenon::hlo
