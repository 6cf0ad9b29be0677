// Rules of arithmetic, logic, comparisons and conversions.
#include "hlo/passes/constants.h"
#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {
namespace {

// --- Conditions

bool has_sign(ElementType type) {
  return !is_float(type) || element_type_info(type).format.specials != FloatSpecials::kExponentOnly;
}

// Whether `wide` can represent every number of `narrow`.
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

// A conversion through a type that loses nothing. Between integers a number that does not fit
// wraps; from a float it becomes the nearest end of the range.
bool converts_as_directly(const Match& match) {
  const ElementType first = match.type();
  const ElementType between = match.inner().result_type().element_type();
  const ElementType last = match.root().result_type().element_type();
  if (is_complex(first) || !holds_all(between, first)) return false;
  const bool saturates = is_integer(first) && is_float(between) && is_integer(last);
  return !saturates || holds_all(last, first);
}

// A choice in a region may be of what is computed once, before a loop.
bool computes_both_for_itself(const Match& match) {
  const auto is_own = [&](const Instruction* op) {
    return op->uses().size() == 1 && op->parent() == match.root().parent() &&
           op->attribute(AttrKey::result_accuracy) == nullptr;
  };
  return is_own(match.ops[1]) && is_own(match.ops[2]);
}

// A known divisor makes a multiplication of a quotient.
bool divides_by_unknown_numbers(const Match& match) {
  const auto is_known = [](const Instruction* quotient) {
    return constant_of(quotient->operand(1)) != nullptr;
  };
  return computes_both_for_itself(match) && !is_known(match.ops[1]) && !is_known(match.ops[2]);
}

constexpr Condition kInteger{"x is an integer",
                             [](const Match& m) { return is_integer(m.type()); }};
constexpr Condition kIntegerOrPred{"x is an integer or pred", [](const Match& m) {
                                     return is_integer(m.type()) || is_pred(m.type());
                                   }};
constexpr Condition kUnsigned{"x is an unsigned integer",
                              [](const Match& m) { return is_unsigned_integer(m.type()); }};
constexpr Condition kPred{"x is pred", [](const Match& m) { return is_pred(m.type()); }};
constexpr Condition kHasSign{"the type of x has a sign",
                             [](const Match& m) { return has_sign(m.type()); }};
constexpr Condition kRealWithSign{"x is real, of a type with a sign", [](const Match& m) {
                                    return !is_complex(m.type()) && has_sign(m.type());
                                  }};
constexpr Condition kSameType{"the result has the type of x", [](const Match& m) {
                                return m.x().type() == m.root().result_type();
                              }};
constexpr Condition kOwnOperands{
    "both are computed beside the choice, for it alone, with no accuracy stated",
    computes_both_for_itself};
constexpr Condition kOwnQuotients{
    "both are computed beside the choice, for it alone, and no divisor is a constant",
    divides_by_unknown_numbers};
constexpr Condition kThroughWider{
    "the type between represents every number of the first; a float between integers saturates no "
    "more "
    "than the last type wraps",
    converts_as_directly};

// --- Replacements with attributes

Value convert_directly(Builder& b, const Match& match) {
  const ElementType last = match.root().result_type().element_type();
  return last == match.type() ? match.x() : b.convert(match.x(), last);
}

// --- The table

// clang-format off
constexpr Rule kRules[] = {
    // Sums and products.
    {.name = "add-zero", .pattern = "add(x, 0)", .where = kIntegerOrPred, .replacement = "x",
     .because = "0 is neutral"},
    {.name = "add-negative-zero", .pattern = "add(x, -0.0)", .where = kFloat, .replacement = "x",
     .because = "-0.0 is neutral; 0.0 is not, since -0.0 + 0.0 is 0.0"},
    {.name = "subtract-zero", .pattern = "subtract(x, 0)", .replacement = "x",
     .because = "0 is neutral; for floats only 0.0, since -0.0 - -0.0 is 0.0"},
    {.name = "subtract-self", .pattern = "subtract(x, x)", .where = kInteger, .replacement = "0",
     .because = "integers have no NaN and no infinity"},
    {.name = "multiply-one", .pattern = "multiply(x, 1)", .replacement = "x",
     .because = "the product is exact, with its sign"},
    {.name = "multiply-zero", .pattern = "multiply(x, 0)", .where = kIntegerOrPred, .replacement = "0",
     .because = "integers have no NaN, no infinity and no -0"},
    {.name = "divide-one", .pattern = "divide(x, 1)", .replacement = "x",
     .because = "the quotient is exact"},
    {.name = "power-one", .pattern = "power(x, 1)", .where = kInteger, .replacement = "x",
     .because = "the power is exact"},
    {.name = "maximum-self", .pattern = "maximum(x, x)", .replacement = "x",
     .because = "a NaN stays NaN"},
    {.name = "minimum-self", .pattern = "minimum(x, x)", .replacement = "x",
     .because = "a NaN stays NaN"},
    // Bits.
    {.name = "and-self", .pattern = "and(x, x)", .replacement = "x", .because = "bit by bit"},
    {.name = "and-zero", .pattern = "and(x, 0)", .replacement = "0", .because = "bit by bit"},
    {.name = "and-ones", .pattern = "and(x, ones)", .replacement = "x", .because = "bit by bit"},
    {.name = "or-self", .pattern = "or(x, x)", .replacement = "x", .because = "bit by bit"},
    {.name = "or-zero", .pattern = "or(x, 0)", .replacement = "x", .because = "bit by bit"},
    {.name = "or-ones", .pattern = "or(x, ones)", .replacement = "ones", .because = "bit by bit"},
    {.name = "xor-zero", .pattern = "xor(x, 0)", .replacement = "x", .because = "bit by bit"},
    {.name = "xor-self", .pattern = "xor(x, x)", .replacement = "0", .because = "bit by bit"},
    {.name = "shift-left-zero", .pattern = "shift_left(x, 0)", .replacement = "x",
     .because = "no bit moves"},
    {.name = "shift-right-logical-zero", .pattern = "shift_right_logical(x, 0)", .replacement = "x",
     .because = "no bit moves"},
    {.name = "shift-right-arithmetic-zero", .pattern = "shift_right_arithmetic(x, 0)", .replacement = "x",
     .because = "no bit moves"},
    // Signs.
    {.name = "negate-negate", .pattern = "negate(negate(x))", .where = kHasSign, .replacement = "x",
     .because = "the sign changes twice; integers wrap both times"},
    {.name = "not-not", .pattern = "not(not(x))", .replacement = "x", .because = "bit by bit"},
    {.name = "abs-abs", .pattern = "abs(abs(x))", .replacement = "abs(x)",
     .because = "abs changes neither a magnitude nor the least integer"},
    {.name = "abs-negate", .pattern = "abs(negate(x))", .where = kRealWithSign, .replacement = "abs(x)",
     .because = "abs drops the sign; the least integer is its own negative"},
    {.name = "floor-floor", .pattern = "floor(floor(x))", .replacement = "floor(x)",
     .because = "a whole number is its own floor"},
    {.name = "ceil-ceil", .pattern = "ceil(ceil(x))", .replacement = "ceil(x)",
     .because = "a whole number is its own ceiling"},
    // Choices.
    {.name = "select-same", .pattern = "select(p, x, x)", .replacement = "x",
     .because = "both operands are the same"},
    {.name = "select-true", .pattern = "select(true, x, y)", .replacement = "x",
     .because = "the choice is known"},
    {.name = "select-false", .pattern = "select(false, x, y)", .replacement = "y",
     .because = "the choice is known"},
    {.name = "select-not", .pattern = "select(not(p), x, y)", .replacement = "select(p, y, x)",
     .because = "a negated predicate selects the other operand"},
    {.name = "select-divide", .pattern = "select(p, divide(x, y), divide(z, w))", .where = kOwnQuotients,
     .replacement = "divide(select(p, x, z), select(p, y, w))",
     .because = "each element is the same quotient; choices cost less than quotients"},
    {.name = "select-exponential", .pattern = "select(p, exponential(x), exponential(y))", .where = kOwnOperands,
     .replacement = "exponential(select(p, x, y))", .because = "each element is the same function"},
    {.name = "select-log", .pattern = "select(p, log(x), log(y))", .where = kOwnOperands,
     .replacement = "log(select(p, x, y))", .because = "each element is the same function"},
    // Comparisons.
    {.name = "compare-self-true", .pattern = "compare[EQ|GE|LE](x, x)", .where = kIntegerOrPred,
     .replacement = "true", .because = "an integer or pred equals itself; a NaN does not"},
    {.name = "compare-self-false", .pattern = "compare[NE|GT|LT](x, x)", .where = kIntegerOrPred,
     .replacement = "false", .because = "an integer or pred equals itself; a NaN does not"},
    {.name = "unsigned-below-zero", .pattern = "compare[LT](x, 0)", .where = kUnsigned,
     .replacement = "false", .because = "0 is the least unsigned integer"},
    {.name = "unsigned-not-below-zero", .pattern = "compare[GE](x, 0)", .where = kUnsigned,
     .replacement = "true", .because = "0 is the least unsigned integer"},
    {.name = "zero-above-unsigned", .pattern = "compare[GT](0, x)", .where = kUnsigned,
     .replacement = "false", .because = "0 is the least unsigned integer"},
    {.name = "zero-not-above-unsigned", .pattern = "compare[LE](0, x)", .where = kUnsigned,
     .replacement = "true", .because = "0 is the least unsigned integer"},
    {.name = "compare-equal-true", .pattern = "compare[EQ](x, true)", .where = kPred, .replacement = "x",
     .because = "pred has two values"},
    {.name = "compare-true-equal", .pattern = "compare[EQ](true, x)", .where = kPred, .replacement = "x",
     .because = "pred has two values"},
    {.name = "compare-unequal-false", .pattern = "compare[NE](x, false)", .where = kPred, .replacement = "x",
     .because = "pred has two values"},
    {.name = "compare-false-unequal", .pattern = "compare[NE](false, x)", .where = kPred, .replacement = "x",
     .because = "pred has two values"},
    // Conversions.
    {.name = "convert-same-type", .pattern = "convert(x)", .where = kSameType, .replacement = "x",
     .because = "each number converts to itself"},
    {.name = "convert-convert", .pattern = "convert(convert(x))", .where = kThroughWider,
     .replacement = "convert(x)", .build = convert_directly,
     .because = "the first conversion loses nothing"},
    {.name = "bitcast-same-type", .pattern = "bitcast_convert(x)", .where = kSameType, .replacement = "x",
     .because = "the bits are the same"},
};
// clang-format on

}  // namespace

std::span<const Rule> arithmetic_rules() { return kRules; }

}  // namespace tenon::hlo::rewrite
