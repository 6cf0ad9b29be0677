// Runs a Module on a device, for `tenon run --device` and tests.
#pragma once

#include <memory>

#include "core/runtime/client.h"
#include "hlo/driver/compile.h"
#include "hlo/evaluator/checks.h"

namespace tenon::hlo {

/// A device to run on.
struct RunTarget {
  std::shared_ptr<runtime::Client> client;
  size_t device = 0;
};

struct RunInfo {
  std::vector<Placement> placement;
  std::vector<std::string> warnings;  ///< Compilation::warnings
  runtime::MemoryStatistics memory;
  /// Steps that the program and the processes that it started ran.
  program::StepCounts steps;
  int64_t folded = 0;  ///< Ops of the program that were computed at compile time.
};

/// Compiles a function of `module`, which is static, and runs it on one argument a parameter.
/// Processes that the program starts (interpreter.run_parallel) get devices of the backend of their
/// own, which must have as many.
Result<std::vector<Literal>> run_on_device(const RunTarget& target, const Module& module,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const CompileOptions& options = {},
                                           RunInfo* info = nullptr);

/// The same of a valid Program: one that compile_to_program made, or a loaded one.
Result<std::vector<Literal>> run_on_device(const RunTarget& target, const program::Program& program,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const CompileOptions& options = {},
                                           RunInfo* info = nullptr);

}  // namespace tenon::hlo
