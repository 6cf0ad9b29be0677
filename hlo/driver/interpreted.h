// A Module lowered to a Program that the kernel interpreter runs, without a device: the reference
// for devices.
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
  /// If not null, the steps that the program and the processes that it started ran are added to it.
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
