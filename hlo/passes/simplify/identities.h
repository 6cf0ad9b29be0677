// hlo/passes/simplify/: makes a Module simpler: folding, algebraic identities, common
// subexpressions, dead code.
//
// Rules by which an op is a simpler one, or none.
//
// A rule holds in every bit under StableHLO's semantics: what would lose a NaN, the sign of a zero
// or a rounding is no rule (x * 0, x - x and x + 0.0 of floats, x / c as x * (1 / c)).
#pragma once

#include <span>
#include <string_view>

#include "hlo/builder/builder.h"

namespace tenon::hlo {

struct Identity {
  OpCode code{};
  std::string_view rule;    ///< "x + 0 = x"
  std::string_view reason;  ///< Why no bit changes.
  /// What stands for the op's only result, or null where the rule does not hold; what is made goes
  /// where the builder stands, before the op.
  Value (*apply)(Builder& b, Instruction& op) = nullptr;
};

/// Of arithmetic, logic, comparisons and conversions.
std::span<const Identity> arithmetic_identities();
/// Of ops that move elements, and of tuples and complex numbers.
std::span<const Identity> shape_identities();

}  // namespace tenon::hlo
