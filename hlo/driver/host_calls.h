// Custom calls that the host handles for every device: the check targets of test programs, and
// communication ops, which the evaluator runs (LowerOptions, kHostTarget).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/program/interpreter.h"
#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

/// Runs function `entry` of `module` on a separate device, as the simulated process `process`.
/// interpreter.run_parallel starts such processes, which communicate.
using RunProcess = std::function<Result<std::vector<Literal>>(
    const Module& module, std::span<const Literal> arguments, const std::string& entry,
    Evaluator* process)>;

/// The host steps of a Program, prepared when it is loaded: the Modules in their configurations,
/// which are text, are parsed once, not in each execution.
///
/// Thread-safety: calls from any thread, several at once.
class HostSteps {
 public:
  /// Errors: a step whose Module does not parse or lacks the function.
  static Result<HostSteps> prepare(const program::Program& program);

  /// Evaluates a step with the target kHostTarget. Checks within it report to `checks`; `process`
  /// is the process that runs the step, or null.
  Result<std::vector<Literal>> run(const program::CustomCall& call,
                                   const std::vector<Literal>& operands, const Checks& checks,
                                   Evaluator* process, const RunProcess& run_process) const;
  /// The number of Module texts parsed since the process began.
  static int64_t parsed();

 private:
  std::map<std::string, std::shared_ptr<const Module>, std::less<>> modules_;  // By text.
};

/// Handles a call of one of Checks::targets().
Result<std::vector<Literal>> run_check(const program::CustomCall& call,
                                       const std::vector<Literal>& operands,
                                       const std::vector<Shape>& results, const Checks& checks);

/// Handlers for the Program's steps, by target name. `checks` is copied, but the objects that it
/// points to are shared. `process` is the process that makes the calls, or null. Errors: those of
/// HostSteps.
Result<std::map<std::string, program::CustomCallHandler>> host_calls(
    const program::Program& program, const Checks& checks, Evaluator* process,
    const RunProcess& run_process);

}  // namespace tenon::hlo
