// Where values are used for the last time.
#pragma once

#include <optional>

#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// Whether `value`, an operand of `op` or captured by it, may change its memory once `op` has read
/// it: nothing behind `op` uses it, no loop around comes back to it, and it is neither a constant
/// nor an argument of the whole program.
bool ends_at(Value value, const Instruction& op);

/// The operand of which result `result` of `op` is a change in part, or the next state: that of a
/// dynamic_update_slice, of a scatter, of a while; none for other ops.
std::optional<size_t> changed_operand(const Instruction& op, uint32_t result);

/// Whether `op` may change operand `i` where it lies: it ends there, and `op` reads it as no other
/// operand and in no region.
bool may_change(const Instruction& op, size_t i);

/// Results of ops that are part of `loop`, a while, and may lie where its state `i` does, all from
/// the parameter of the body to what is returned, if each of them only changes the one before it.
/// Else nothing.
std::optional<std::vector<Value>> update_chain(const Instruction& loop, uint32_t i);

}  // namespace tenon::hlo::lower
