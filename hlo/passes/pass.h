// hlo/passes/: passes over Modules, their registry and pipelines.
//
// Passes over a Module, and their runner.
//
// One row a pass in pass.cpp is its only declaration: `tenon opt --passes=inline-calls,dce` and its
// help follow from it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/ir/instruction.h"
#include "hlo/passes/rewrite/rewriter.h"

namespace tenon::hlo {

struct PassOptions;

/// Changes `module`; true if anything changed. An error leaves a Module that is good for nothing
/// but destruction.
using PassFunction = Result<bool> (*)(Module& module, const PassOptions& options);

struct Pass {
  std::string_view name;
  std::string_view summary;
  PassFunction run = nullptr;
};

std::span<const Pass> all_passes();
const Pass* find_pass(std::string_view name);

struct PassOptions {
  /// Called after each pass that changed something.
  std::function<void(const Pass&, const Module&)> after;
  /// Verify the Module after each pass that changed something.
  bool verify = false;
  /// Of the rewrite rules: those that are disabled, and statistics.
  rewrite::Options rewrites;
  /// Ops that constant folding computed, or decided, are added to it, if not null.
  int64_t* folded = nullptr;
};

/// Runs passes by name, in order. An error names the pass as its stage.
Status run_passes(Module& module, std::span<const std::string_view> names,
                  const PassOptions& options = {});

/// What lowering asks for: calls inlined, decomposable ops decomposed, nothing dead.
std::span<const std::string_view> lowering_passes();
/// The same, and what makes programs faster: what the driver runs (hlo/driver).
std::span<const std::string_view> optimizing_passes();

// --- The passes, a file each

/// Calls, composites and asynchronous computations become the ops they stand for: a composite that
/// is called after a CHLO function that op, any other its decomposition. Functions that nothing
/// calls go.
Result<bool> inline_all_calls(Module& module);
/// Ops that a target which knows primitive ops alone must have decomposed (hlo/decomposition) are.
/// The state behind `rng` starts from a constant and is carried through control flow.
Result<bool> decompose(Module& module);
/// Sets `whole_windows` of every scatter: programs of XLA's frontends expect a window that is
/// partly out of range to be dropped as a whole, where StableHLO drops only what is out of range.
/// Not part of any pipeline: whoever imports such a program runs it (frameworks/pjrt).
Result<bool> drop_whole_windows(Module& module);
/// Instructions without effect whose results nothing uses go.
Result<bool> eliminate_dead(Module& module);
/// Replaces an op by an earlier identical one.
Result<bool> share_common(Module& module);
/// Ops on constants become constants where these stay small; branches and loops whose way is known
/// are taken.
Result<bool> fold_constants(Module& module, const PassOptions& options = {});
/// Removes values carried by loops that are invariant, duplicated or unused, and results of
/// branches that nothing uses.
Result<bool> reduce_carries(Module& module);
/// The rewrite rules (rewrite/rule.h), the three before and eliminate_dead in turn, until nothing
/// changes.
Result<bool> simplify(Module& module, const PassOptions& options = {});
/// Elementwise ops, reductions of what they give, and what only moves elements for them become
/// fusions.
Result<bool> fuse_elements(Module& module);
/// Fusions within fusions become the ops that they consist of.
Result<bool> flatten_fusions(Module& module);
/// Moves readers of an array before its in-place updates where dependencies allow it.
Result<bool> order_updates(Module& module);

}  // namespace tenon::hlo
