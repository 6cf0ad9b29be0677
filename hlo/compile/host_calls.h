// Custom calls that the host answers, on whatever device: the check targets of test programs, and
// ops of communication, which are evaluated (LowerOptions, kHostTarget).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/program/interpreter.h"
#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

/// Runs function `entry` of `module` on a device of its own, as the simulated process that
/// `process` evaluates: interpreter.run_parallel starts some, which communicate.
using RunProcess = std::function<Result<std::vector<Literal>>(
    const Module& module, std::span<const Literal> arguments, const std::string& entry,
    Evaluator* process)>;

/// By target name. `checks` is copied, what it points to is not. `process` is the one whose calls
/// these are, or null.
std::map<std::string, program::CustomCallHandler> host_calls(const Checks& checks,
                                                             Evaluator* process,
                                                             const RunProcess& run_process);

}  // namespace tenon::hlo
