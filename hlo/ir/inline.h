// Inlining of calls.
#pragma once

#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Puts copies of the instructions of `body` before `before`, with `arguments` for its parameters.
/// Gives the values that the copy of the body returns.
std::vector<Value> clone_body(const Computation& body, const std::vector<Value>& arguments,
                              Instruction& before);

/// Replaces every func.call in `computation` and its regions by the callee's body, also calls in
/// inlined bodies. Calls are not recursive in a verified Module. Instructions keep their own
/// locations.
///
/// `limit` bounds the number of instructions made, those in regions included: calls of calls grow
/// exponentially.
Status inline_calls(Computation& computation, int64_t limit = 1 << 22);

/// Inlines the calls of all functions that are left when those of the entry are inlined, and erases
/// functions that nothing refers to any more. Functions that only the entry calls, directly or not,
/// are inlined there alone, so that a chain of calls is copied once. `limit` is that of the Module.
Status inline_calls(Module& module, int64_t limit = 1 << 22);

/// Erases functions that nothing refers to: neither the entry nor, through calls, composites and
/// custom calls, anything that the entry reaches. `entry` null means the Module's own.
void erase_unreachable_functions(Module& module, const Computation* entry = nullptr);

/// Makes `name` the Module's entry and keeps only the functions that it needs; calls in it are
/// inlined. An empty name leaves the Module as it is. Errors: there is no such function; those of
/// inline_calls.
Status select_entry(Module& module, std::string_view name);

}  // namespace tenon::hlo
