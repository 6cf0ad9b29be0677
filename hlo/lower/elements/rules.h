// The element rules, which `.element` of the op table names.
#pragma once

#include "hlo/lower/elements/emitter.h"

namespace tenon::hlo::lower {

/// Computes the results of an elementwise op from its operands at one index.
using ElementwiseFunction = Elements (*)(ElementEmitter&, const Instruction&,
                                         const Elements& operands);

/// How a kernel computes one element of an op's results. An elementwise op has `numbers` or
/// `operation`, and `complex` if it takes complex numbers; any other op has one of the last three.
struct ElementRule {
  /// One operation of the kernel IR, for all types except complex ones …
  std::optional<kernel::OpCode> operation{};
  /// … and a different one for pred, if needed.
  std::optional<kernel::OpCode> on_truth{};
  ElementwiseFunction numbers = nullptr;
  ElementwiseFunction complex = nullptr;
  /// All results at one index.
  Elements (*at)(ElementEmitter&, const Instruction&, const Values& index) = nullptr;
  /// One result at an index, for an op whose results have different shapes.
  Element (*result)(ElementEmitter&, const Instruction&, uint32_t result,
                    const Values& index) = nullptr;
  /// The value that has the same elements as a result.
  Value (*same_as)(ElementEmitter&, Value result) = nullptr;
  /// Whether the rule applies to this instance; null: to every instance whose regions have rules.
  bool (*fits)(const Instruction&) = nullptr;
};

/// Whether the op is a math function of the kernel IR, such as exponential or sine.
inline bool is_math_function(const Instruction& op) {
  const ElementRule* const rule = op.info().element;
  return rule != nullptr && rule->operation && kernel::is_math(*rule->operation);
}

namespace emit {
// NOLINTBEGIN(readability-identifier-naming): the ops' names
extern const ElementRule abs, add, atan2, bit_and, bit_or, bit_xor, bitcast_convert,
    broadcast_in_dim, case_op, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert,
    convolution, cosine, count_leading_zeros, divide, dot_general, dynamic_slice,
    dynamic_update_slice, erf, erfc, exponential, exponential_minus_one, floor, fusion, gather,
    if_op, imag, iota, is_finite, log, log_plus_one, logistic, map, maximum, minimum, mulhi,
    multiply, negate, not_, optimization_barrier, pad, popcnt, power, real, reduce,
    reduce_precision, reduce_window, remainder, reshape, reverse, rng_bit_generator,
    round_nearest_afz, round_nearest_even, rsqrt, select, select_and_scatter, shift_left,
    shift_right_arithmetic, shift_right_logical, sign, sine, slice, sqrt, subtract, tan, tanh,
    transpose, while_op;
// NOLINTEND(readability-identifier-naming)
}  // namespace emit

/// Elementwise ops on complex numbers (complex.cpp).
namespace complex_rules {
using Rule = Elements(ElementEmitter& e, const Instruction& op, const Elements& operands);
Rule abs, add, atan2, cbrt, clamp, compare, complex, convert, cosine, divide, exponential,
    exponential_minus_one, imag, log, log_plus_one, logistic, maximum, minimum, multiply, negate,
    power, real, remainder, rsqrt, select, sign, sine, sqrt, subtract, tan, tanh;
}  // namespace complex_rules

}  // namespace tenon::hlo::lower
