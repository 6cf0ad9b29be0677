// The two sides of a convolution.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Makes of a convolution of an input with gaps by a larger filter, which is the gradient by the
/// filter of a transposed convolution, one of the filter by the input, whose places lie as far
/// apart: no tile meets the gaps, and the larger array is no longer the one that is copied for each
/// place of the result. The result is reversed. Returns what stands for the result of `op`, a
/// convolution of plain floats without groups, or null.
Value exchange_sides(Instruction& op);

}  // namespace tenon::hlo
