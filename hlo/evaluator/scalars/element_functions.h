// Elementwise ops on scalars: one function per op and storage.
#pragma once

#include "hlo/evaluator/scalars/scalar.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The types and attributes that an elementwise function needs in addition to its operands.
struct ElementContext {
  ElementType operand_type{};
  ElementType result_type{};
  bool wide = false;
  ComparisonDirection direction{};
  ComparisonType comparison{};
  int64_t exponent_bits = 0;
  int64_t mantissa_bits = 0;
};

using ElementFunction = Scalar (*)(const ElementContext& context, const Scalar* operands);

/// An elementwise op on scalars, one function per storage; null if the op is not defined for it.
struct ScalarFunctions {
  ElementFunction integer = nullptr;
  ElementFunction real = nullptr;
  ElementFunction wide = nullptr;
  ElementFunction complex = nullptr;
  /// For f64 outside wide mode, where a double computation would not round correctly.
  ElementFunction f64 = nullptr;

  /// The function on operands of `context.operand_type`, or null.
  ElementFunction of(const ElementContext& context) const;
};

/// The functions that `.scalar` of the op table names.
namespace scalar {
// NOLINTBEGIN(readability-identifier-naming): the ops' names
extern const ScalarFunctions abs, add, atan2, bit_and, bit_or, bit_xor, cbrt, ceil, compare,
    complex, convert, cosine, count_leading_zeros, divide, erf, erfc, exponential,
    exponential_minus_one, floor, imag, is_finite, log, log_plus_one, logistic, maximum, minimum,
    mulhi, multiply, negate, not_, popcnt, power, real, reduce_precision, remainder,
    round_nearest_afz, round_nearest_even, rsqrt, select, shift_left, shift_right_arithmetic,
    shift_right_logical, sign, sine, sqrt, subtract, tan, tanh;
// NOLINTEND(readability-identifier-naming)
}  // namespace scalar

/// The function of an elementwise op on operands of `context.operand_type`, or null if the op is
/// not elementwise or not defined on the type.
ElementFunction element_function(const Instruction& op, const ElementContext& context);

/// The context for `op`, from its operand and result types and attributes.
ElementContext element_context(const Instruction& op, bool wide);

/// Whether `a` comes before `b` in the total order -NaN < -inf < … < -0 < +0 < … < +inf < +NaN.
bool total_order_less(ElementType type, const Scalar& a, const Scalar& b);

}  // namespace tenon::hlo
