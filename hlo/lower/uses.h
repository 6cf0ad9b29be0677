// Where values are used for the last time.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// Whether `value`, an operand of `op` or captured by it, may change its memory once `op` has read
/// it: nothing behind `op` uses it, no loop around comes back to it, and it is neither a constant
/// nor an argument of the whole program.
bool ends_at(Value value, const Instruction& op);

}  // namespace tenon::hlo::lower
