// Last uses of values, and updates in place.
#pragma once

#include <optional>

#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// Whether the memory of `value`, an operand of `op` or captured by it, may change once `op` has
/// read it: nothing after `op` uses it, no enclosing loop uses it again, and it is neither a
/// constant nor an argument of the whole program.
bool ends_at(Value value, const Instruction& op);

/// The operand of which result `result` of `op` changes a part, or is the next state: for a
/// dynamic_update_slice, a scatter or a while; nothing for other ops.
std::optional<size_t> changed_operand(const Instruction& op, uint32_t result);

/// Whether `op` may update operand `i` in place: this is the last use of the value, and `op` uses
/// it neither as another operand nor in a region.
bool may_change(const Instruction& op, size_t i);

/// The results of ops within `loop`, a while, that may use the memory of its state `i`: the chain
/// from the parameter of the body to the value that it returns, if each of them updates only the
/// previous one. Else nothing.
std::optional<std::vector<Value>> update_chain(const Instruction& loop, uint32_t i);

}  // namespace tenon::hlo::lower
