// Runs a Module by lowering it to a Program and interpreting its kernels, without a device: the
// reference for devices.
#pragma once

#include "core/program/interpreter.h"
#include "hlo/evaluator/checks.h"
#include "hlo/lower/lower.h"

namespace tenon::hlo {

struct InterpretedRunOptions {
  LowerOptions lower;
  kernel::InterpreterOptions interpreter;
  /// If set, kernels are legalised for these features.
  std::optional<kernel::TargetFeatures> features;
  /// If not null, the steps that the program and its processes ran are added to it.
  program::StepCounts* steps = nullptr;
};

/// Compiles `module`, which must be static, and runs it on one argument per parameter.
Result<std::vector<Literal>> run_interpreted(const Module& module,
                                             std::span<const Literal> arguments,
                                             const Checks& checks,
                                             const InterpretedRunOptions& options = {});

/// Runs a valid Program: made by compile_to_program, or loaded.
Result<std::vector<Literal>> run_interpreted(const program::Program& program,
                                             std::span<const Literal> arguments,
                                             const Checks& checks,
                                             const InterpretedRunOptions& options = {});

}  // namespace tenon::hlo
