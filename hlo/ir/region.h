// Questions about the regions of ops that combine elements.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The op that a region consists of, if it takes the two parameters, in either order, and its
/// result is the result of the region; else null.
const Instruction* op_of_two_parameters(const Computation& region);

/// Whether a region adds two floats of fewer than 32 bits and does nothing else. A reduction by it
/// sums in a wider type and rounds once (docs/numerics.md).
bool is_narrow_sum(const Computation& region);

}  // namespace tenon::hlo
