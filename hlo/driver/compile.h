// hlo/driver/: compiles a Module for a device and runs it.
//
// The driver: a Module to a Program that a backend has compiled.
//
// Passes, lowering by what the target allows, legalisation, the backend's compile. An op whose
// kernel the backend declines is lowered again smaller, then op by op, then run by the host. The
// rest of the Program stays as it was: kernels that come out of the next lowering as before are not
// made, legalised or offered to the backend again.
#pragma once

#include <string>
#include <vector>

#include "core/runtime/executable.h"
#include "hlo/driver/placement.h"
#include "hlo/lower/lower.h"
#include "hlo/passes/rewrite/rewriter.h"

namespace tenon::hlo {

struct CompileOptions {
  LowerOptions lower;
  /// Take the target's own math functions, where it states some, instead of the expansions that
  /// give the same bits everywhere.
  bool native_math = false;
  /// Which rewrite rules are applied.
  rewrite::Options rewrites;
  /// A kernel that would run on the host is an error that names it.
  bool strict = false;
};

struct Compilation {
  runtime::CompiledProgram compiled;
  std::vector<Placement> placement;  ///< One for each launch, call and host step, in order.
  /// Runs of steps that the backend declined to compile as one, with its reasons.
  std::vector<std::string> declined_segments;
  /// Parameters that the target states and this release does not know, a sentence each.
  std::vector<std::string> warnings;
  int attempts = 1;         ///< Times that the Module was lowered.
  int64_t lowered_ops = 0;  ///< Ops that kernels were made for, in all attempts together.
  int64_t folded = 0;       ///< Ops that were computed, or decided, by constant folding.
};

/// Errors: those of lowering; those of the backend's compile, other than declining; with `strict`
/// kFailedPrecondition. Passes free the constants that they replace: a caller that hands the Module
/// over saves their memory.
Result<Compilation> compile(std::unique_ptr<Module> module, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options = {});
/// The same for a copy.
Result<Compilation> compile(const Module& module, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options = {});

/// The same for a lowered Program: declined kernels go to the host at once.
Result<Compilation> compile(const program::Program& program, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options = {});

/// Runs lowering_passes() on a copy of `module` and lowers it: the Program of no device, which the
/// kernel interpreter runs.
Result<program::Program> compile_to_program(const Module& module, const LowerOptions& options = {});

}  // namespace tenon::hlo
