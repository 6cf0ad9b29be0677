// Reductions of values and their places to the greatest or the least value.
#pragma once

#include <optional>

#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

enum class Extremum : uint8_t { kGreatest, kLeast };

/// The extremum whose lowest place a reduce of values and integers finds (argmax, argmin); a NaN is
/// beyond every number. Its order then does not matter. Nothing if the values are neither integers
/// nor floats, if the region may compute anything else, or if floats are used themselves: of zeros
/// of both signs either may be the result.
///
/// Regions of compares, logic, selects, minima and maxima, none of which mixes values and places,
/// know only how the two values and the two places are ordered, so that trying each order proves
/// what they compute.
std::optional<Extremum> find_arg_extremum(const Instruction& reduce);

/// Whether the places of the leaves of such a reduce are in order: an iota along the only reduced
/// dimension, none of whose numbers is lower than the place of the initial value, a constant.
bool places_ascend(const Instruction& reduce);

}  // namespace tenon::hlo::lower
