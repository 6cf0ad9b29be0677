// Queries about regions of ops that combine elements.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The op that the region consists of, if its operands are the two parameters, in either order, and
/// its result is the result of the region; else null.
const Instruction* op_of_two_parameters(const Computation& region);

/// Whether a region that combines an accumulator and an element can also combine two accumulators:
/// its element parameters have the accumulators' types.
bool combines_accumulators(const Computation& region);

/// Whether a region only adds two floats of fewer than 32 bits. A reduction with such a region sums
/// in a wider type and rounds once (docs/numerics.md).
bool is_narrow_sum(const Computation& region);

}  // namespace tenon::hlo
