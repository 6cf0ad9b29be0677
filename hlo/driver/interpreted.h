// A Module lowered to a Program that the kernel interpreter runs, without a device: what devices
// are held against.
#pragma once

#include "core/program/interpreter.h"
#include "hlo/evaluator/checks.h"
#include "hlo/lower/lower.h"

namespace tenon::hlo {

struct InterpretedRunOptions {
  LowerOptions lower;
  kernel::InterpreterOptions interpreter;
  /// Kernels are legalised to these.
  std::optional<kernel::TargetFeatures> features;
  /// What the program and the processes that it started ran is added to it, if not null.
  program::StepCounts* steps = nullptr;
};

/// Compiles `module`, which is static, and runs it on one argument a parameter.
Result<std::vector<Literal>> run_interpreted(const Module& module,
                                             std::span<const Literal> arguments,
                                             const Checks& checks,
                                             const InterpretedRunOptions& options = {});

/// Runs a valid Program: one that compile_to_program made, or a loaded one.
Result<std::vector<Literal>> run_interpreted(const program::Program& program,
                                             std::span<const Literal> arguments,
                                             const Checks& checks,
                                             const InterpretedRunOptions& options = {});

}  // namespace tenon::hlo
