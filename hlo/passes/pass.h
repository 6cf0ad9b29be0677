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
#include "hlo/lower/cost_model.h"
#include "hlo/passes/rewrite/rewriter.h"

namespace tenon::hlo {

struct PassOptions;

/// Changes `module`; true if anything changed. After an error the Module may only be destroyed.
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
  /// Options of the rewrite rules: those that are disabled, and statistics.
  rewrite::Options rewrites;
  /// Costs of the target, by which fusion chooses.
  lower::CostModel cost;
  /// Whether the target takes a composite whole, by its name, attributes and types; its operands
  /// may be constants. Null: it takes none. Others are replaced by their decompositions.
  std::function<Result<bool>(const Instruction& composite)> takes_composite;
  /// Whether the target reads constant factors in panels (factor-panels); asked where there are
  /// large constants. Null: where CostModel::panel_bytes says so.
  std::function<Result<bool>()> reads_panels;
  /// Ops that constant folding computed, or decided, are added to it, if not null.
  int64_t* folded = nullptr;
};

/// Runs passes by name, in order. An error names the pass as its stage.
Status run_passes(Module& module, std::span<const std::string_view> names,
                  const PassOptions& options = {});

/// The passes that lowering requires: calls inlined, decomposable ops decomposed, dead ops removed.
std::span<const std::string_view> lowering_passes();
/// The same and the optimizations: the pipeline of the driver (hlo/driver).
std::span<const std::string_view> optimizing_passes();

// --- The passes, a file each

/// Inlines calls, composites and asynchronous computations: a composite that is named after a CHLO
/// function becomes that op, one that the target takes stays, any other becomes its decomposition.
/// Removes functions without calls.
Result<bool> inline_all_calls(Module& module, const PassOptions& options = {});
/// Decomposes ops (hlo/decomposition) for a target that knows primitive ops only; custom calls of
/// linear algebra that the target takes stay. The state behind `rng` starts from a constant and is
/// carried through control flow.
Result<bool> decompose(Module& module, const PassOptions& options = {});
/// Sets `whole_windows` of every scatter: programs of XLA's frontends expect a window that is
/// partly out of range to be dropped as a whole, where StableHLO drops only the elements out of
/// range. Not part of any pipeline: the importer of such a program runs it (frameworks/pjrt).
Result<bool> drop_whole_windows(Module& module);
/// Brings the operands and results of custom calls that state layouts into the order of memory, by
/// transposes: arrays are row-major. The calls keep the orders that their functions see
/// (lower/foreign_calls.h).
Result<bool> lay_out_calls(Module& module);
/// Makes select_and_scatters of windows that are large, meet, or lie side by side reductions of
/// each window to the place that it selects: each element would ask every window around it.
Result<bool> choose_in_windows(Module& module);
/// Brings the operands of a select_and_scatter whose last dimension windows move along into an
/// order with another dimension last, and its result back.
Result<bool> lay_out_windows(Module& module);
/// Makes convolutions of few places beside a large filter, and those of few products a result (the
/// gradient by such a filter), products of matrices, for which the large array stays as it lies.
/// With wide tiles.
Result<bool> make_convolution_products(Module& module, const PassOptions& options = {});
/// Brings filters that end in the window into an order that ends in inputs and outputs, and arrays
/// that end in few places into one that ends in features, by transposes; with wide tiles all arrays
/// of many elements, and the ops between them.
Result<bool> lay_out_convolutions(Module& module, const PassOptions& options = {});
/// Computes products of integers in floats where these are exact in any order, on targets where
/// that is faster.
Result<bool> compute_integers_in_floats(Module& module, const PassOptions& options = {});
/// Brings constant right factors of products into an order that ends in columns, by transposes,
/// which constant folding computes. With wide tiles.
Result<bool> lay_out_factors(Module& module, const PassOptions& options = {});
/// Makes constant right factors of products panels: columns as many as a tile has side by side, one
/// panel after the other, so that products read them in a row and pack nothing. With wide tiles.
Result<bool> lay_out_panels(Module& module, const PassOptions& options = {});
/// Makes two transposes of one whose rows are short in the operand or in the result, so that each
/// moves long rows. Within fusions transposes stay.
Result<bool> split_transposes(Module& module);
/// Makes two reductions of one down columns of a few elements, where a target says that they fill
/// no vectors (CostModel::short_columns): the first adds long rows. Sums are added in another
/// order.
Result<bool> split_reductions(Module& module, const PassOptions& options = {});
/// Makes pads and concatenations that leave short last dimensions as they are those of longer rows.
/// Within fusions they stay.
Result<bool> merge_rows(Module& module);
/// Dead code elimination: removes instructions without effect whose results have no uses.
Result<bool> eliminate_dead(Module& module);
/// Common subexpression elimination: replaces an op by an earlier identical one.
Result<bool> share_common(Module& module);
/// Constant folding: computes ops on constants if the results stay small; resolves branches and
/// loops whose path is known.
Result<bool> fold_constants(Module& module, const PassOptions& options = {});
/// Removes values carried by loops that are invariant, duplicated or unused, and results of
/// branches that nothing uses.
Result<bool> reduce_carries(Module& module);
/// Moves what loops compute of values that do not change before them. The results, each and all
/// together, take no more memory than what they are computed of, but for 64 KiB.
Result<bool> hoist_invariants(Module& module);
/// The rewrite rules (rewrite/rule.h) but for late ones, the three before and eliminate_dead in
/// turn, until nothing changes.
Result<bool> simplify(Module& module, const PassOptions& options = {});
/// Splits arrays [n, 3] that are stacked of arrays [n] and taken apart again into these, through
/// ops that can be done part by part (parts/parts.h) and what loops carry. A sum over the last
/// dimension is added in order, from the first element on.
Result<bool> split_stacks(Module& module, const PassOptions& options = {});
/// Makes long windows that move by one element two scans of blocks: the cost of each element no
/// longer grows with the window. Sums are added in another order.
Result<bool> slide_windows(Module& module);
/// Replaces the ops of idioms (idioms/idiom.h) by composites, where the target takes them.
Result<bool> recognize_idioms(Module& module, const PassOptions& options = {});
/// Makes fusions of elementwise ops, reductions of their results, and ops that only move elements
/// for them.
Result<bool> fuse_elements(Module& module, const PassOptions& options = {});
Result<bool> first_elements(Module& module);
/// Computes large arrays that products make, and that products and reductions use up, by blocks of
/// their rows, in loops that keep a block alone. Sums over rows are added in another order.
Result<bool> compute_in_row_blocks(Module& module, const PassOptions& options = {});
/// Makes fusions of attentions (lower/schedules/products/attention.h) whose scores are many.
Result<bool> fuse_attention(Module& module, const PassOptions& options = {});
/// Replaces fusions within fusions by the ops that they consist of.
Result<bool> flatten_fusions(Module& module);
/// Moves readers of an array before its in-place updates where dependencies allow it.
Result<bool> order_updates(Module& module);

}  // namespace tenon::hlo
