// The error that a result may have: one table, op x type. docs/conformance.md says where each bound
// comes from.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// The largest error, in units in the last place of the exact result, of a function on `type` (for
/// a complex type: normwise). 0: the result is correctly rounded. Ops whose error depends on the
/// order of combination are bounded by their terms (hlo/evaluator/error_bound.h).
double required_ulp(const hlo::Instruction& op, ElementType type);

/// A row of the table, for docs/conformance.md.
struct RequiredBound {
  hlo::OpCode op;
  double f32 = 0;
  double f64 = 0;
  /// Types narrower than f32, which are computed in f32 and rounded once more.
  double narrow = 0;
  std::string_view source;
};
std::vector<RequiredBound> required_bounds();

}  // namespace tenon::conformance
