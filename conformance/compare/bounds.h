// The error that a result may have: one table, op x type. docs/conformance.md says where each bound
// comes from.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// The largest error, in units in the last place of the exact result, of a function on `type` (for
/// a complex type: of the modulus, by the distance of the numbers). 0: the result is correctly
/// rounded. Ops whose error depends on the order of combination are bounded by their terms
/// (hlo/evaluator/error_bound.h).
double required_ulp(const hlo::Instruction& op, ElementType type);
/// The bound of a ledger's entry, without its instruction. Nothing if there is no such op.
std::optional<double> required_ulp(std::string_view op, ElementType type);

/// A bound that the declaration of a device relaxes: results beyond the required bound and within
/// this one are quality warnings.
struct RelaxedBound {
  std::string op;    ///< A pattern of names: "stablehlo.tan", "chlo.*".
  std::string type;  ///< A pattern of names: "f32", "*".
  double ulp = 0;
};
/// The greatest of the bounds that match; 0 if none does.
double relaxed_ulp(std::span<const RelaxedBound> relaxed, std::string_view op, ElementType type);

}  // namespace tenon::conformance
