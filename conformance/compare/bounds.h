// The error that a result may have: one table, op x type. docs/conformance.md says where each bound
// comes from.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// The largest error, in units in the last place of the exact result, of a function on `type` (for
/// a complex type: normwise). 0: the result is correctly rounded. Ops whose error depends on the
/// order of combination are bounded by their terms (hlo/evaluator/error_bound.h).
double required_ulp(const hlo::Instruction& op, ElementType type);

}  // namespace tenon::conformance
