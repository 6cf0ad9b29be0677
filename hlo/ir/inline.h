// Inlining of calls.
#pragma once

#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Inserts copies of the instructions of `body` before `before`, with `arguments` for its
/// parameters. Returns the values that the copied body returns.
std::vector<Value> clone_body(const Computation& body, const std::vector<Value>& arguments,
                              Instruction& before);

/// Replaces every func.call in `computation` and its regions by the callee's body, including calls
/// in inlined bodies. Calls are not recursive in a verified Module. Instructions keep their
/// locations.
///
/// `limit` bounds the number of created instructions, including those in regions, because nested
/// calls can grow exponentially.
Status inline_calls(Computation& computation, int64_t limit = 1 << 22);

/// Inlines the calls in all functions that remain after inlining those of the entry, and erases
/// functions that are not referenced any more. Functions that only the entry calls, directly or
/// indirectly, are inlined only there, so that a chain of calls is copied once. `limit` is for the
/// whole Module.
Status inline_calls(Module& module, int64_t limit = 1 << 22);

/// Erases functions that are not reachable from the entry through calls, composites and custom
/// calls. If `entry` is null, the Module's entry is used.
void erase_unreachable_functions(Module& module, const Computation* entry = nullptr);

/// Makes `name` the Module's entry, inlines its calls and keeps only the functions that it needs.
/// An empty name does nothing. Errors: there is no such function; those of inline_calls.
Status select_entry(Module& module, std::string_view name);

}  // namespace tenon::hlo
