// Runs a Module on a device, for `tenon run --device` and tests.
#pragma once

#include <memory>

#include "core/runtime/client.h"
#include "hlo/driver/compile.h"
#include "hlo/evaluator/checks.h"

namespace tenon::hlo {

/// A device, and how to run on it.
struct RunTarget {
  std::shared_ptr<runtime::Client> client;
  size_t device = 0;
  /// Executions of the program, at least one, on the same arguments; the results are the last
  /// one's.
  int64_t repeat = 1;
  /// Ends the executions, of which there are then at least two, after these seconds; 0: never.
  double most_seconds = 0;
  /// Is told of the program's steps; may be null.
  runtime::StepObserver* observer = nullptr;
};

/// Seconds by the host's clock.
struct RunTimes {
  double compile = 0;
  double load = 0;
  double arguments = 0;            ///< Until all arguments are on the device.
  std::vector<double> executions;  ///< Each from its call until its results are there.
  double results = 0;              ///< Until the results are in host memory.
};

struct RunInfo {
  std::vector<Placement> placement;
  std::vector<std::string> warnings;  ///< Compilation::warnings
  runtime::MemoryStatistics memory;
  /// The steps that the program and its processes ran.
  program::StepCounts steps;
  int64_t folded = 0;  ///< Ops of the program that were evaluated at compile time.
  RunTimes times;
};

/// Compiles a function of `module`, which must be static, and runs it on one argument per
/// parameter. Each process that the program starts (interpreter.run_parallel) gets its own device
/// of the backend, which must have enough devices.
Result<std::vector<Literal>> run_on_device(const RunTarget& target, const Module& module,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const CompileOptions& options = {},
                                           RunInfo* info = nullptr);

/// The same for a valid Program: made by compile_to_program, or loaded.
Result<std::vector<Literal>> run_on_device(const RunTarget& target, const program::Program& program,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const CompileOptions& options = {},
                                           RunInfo* info = nullptr);

/// The same for what was compiled for the device (core/runtime/serial.h); compiles nothing. `info`
/// has no placement.
Result<std::vector<Literal>> run_on_device(const RunTarget& target,
                                           const runtime::CompiledProgram& compiled,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           RunInfo* info = nullptr);

}  // namespace tenon::hlo
