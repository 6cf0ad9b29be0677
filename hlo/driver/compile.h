// hlo/driver/: compiles a Module for a device and runs it.
//
// The driver: a Module to a Program that a backend has compiled.
//
// Passes, lowering by what the target allows, legalisation, the backend's compile. A kernel that
// the backend declines is lowered again smaller, then op by op, then run by the host; the rest of
// the Program stays as it was.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/runtime/executable.h"
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

enum class PlacementKind : uint8_t {
  kNative,  ///< A call that the backend took.
  kKernel,
  kHost,
};
std::string_view name_of(PlacementKind kind);

/// Where a step of the Program runs, and why: which call the backend took or declined, with its
/// reason, why a kernel runs on the host, whether the step is part of a segment.
struct Placement {
  PlacementKind kind = PlacementKind::kKernel;
  std::string label;   ///< "stablehlo.add at model.mlir:3:8"
  std::string kernel;  ///< Its name, of kKernel and kHost.
  std::string reason;
  int64_t bytes = 0;  ///< Read and written.
};

struct Compilation {
  runtime::CompiledProgram compiled;
  std::vector<Placement> placement;  ///< One for each launch, call and host step, in order.
  /// Runs of steps that the backend declined to compile as one, with its reasons.
  std::vector<std::string> declined_segments;
  int attempts = 1;    ///< Times that the Module was lowered.
  int64_t folded = 0;  ///< Ops that were computed, or decided, by constant folding.
};

/// Errors: those of lowering; those of the backend's compile, other than declining; with `strict`
/// kFailedPrecondition.
Result<Compilation> compile(const Module& module, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options = {});

/// The same for a lowered Program: declined kernels go to the host at once.
Result<Compilation> compile(const program::Program& program, backend::Backend& backend,
                            const backend::TargetInfo& target, const CompileOptions& options = {});

/// Runs lowering_passes() on a copy of `module` and lowers it: the Program of no device, which the
/// kernel interpreter runs.
Result<program::Program> compile_to_program(const Module& module, const LowerOptions& options = {});

/// "native 7, kernel 104, host 0 of 111"
std::string summary(const std::vector<Placement>& placement);

/// The first step that the host runs since the device declined it; null if there is none.
const Placement* first_declined(const std::vector<Placement>& placement);

}  // namespace tenon::hlo
