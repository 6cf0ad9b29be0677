#include "hlo/passes/pass.h"

#include <algorithm>

#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

// A pass without options.
template <Result<bool> (*kPass)(Module&)>
Result<bool> plain(Module& module, const PassOptions&) {
  return kPass(module);
}

Result<bool> apply_rules(Module& module, const PassOptions& options) {
  return rewrite::apply_rules(module, options.rewrites);
}

constexpr Pass kPasses[] = {
    {"inline-calls",
     "Calls, composites and asynchronous computations become the ops they stand for.",
     inline_all_calls},
    {"decompose", "Decomposable ops become primitive ones.", decompose},
    {"call-layouts", "Custom calls get row-major arrays, whatever layouts they state.",
     plain<lay_out_calls>},
    {"cse", "Replaces ops by earlier identical ones.", plain<share_common>},
    {"constant-fold", "Ops on constants become small constants; known branches are taken.",
     fold_constants},
    {"algebraic-simplify",
     "Ops become simpler ones, or none, by the rewrite rules (`tenon rules`).", apply_rules},
    {"loop-carries", "Removes invariant, duplicated and unused values that loops carry.",
     plain<reduce_carries>},
    {"hoist-invariants", "What loops compute of values that do not change moves before them.",
     plain<hoist_invariants>},
    {"simplify",
     "algebraic-simplify, constant-fold, cse, loop-carries and dce in turn, until nothing changes.",
     simplify},
    {"split-stacks", "Arrays stacked of a few and taken apart again become these few arrays.",
     split_stacks},
    {"sliding-windows",
     "Long windows that move by one element become prefixes and suffixes of blocks.",
     plain<slide_windows>},
    {"window-choices",
     "Windows of gradients of pools that are large, meet, or lie side by side, select once each.",
     plain<choose_in_windows>},
    {"window-layouts",
     "Gradients of pools are computed with a dimension last along which no window moves.",
     plain<lay_out_windows>},
    {"float-products", "Products of small integers are computed in floats, where those are exact.",
     compute_integers_in_floats},
    {"convolution-products",
     "Convolutions of few places, or of few products a result, become products of matrices.",
     make_convolution_products},
    {"convolution-layouts",
     "Filters end in their outputs, and arrays in their features, of few places or throughout.",
     lay_out_convolutions},
    {"factor-layouts", "Constant right factors of products end in columns.", lay_out_factors},
    {"recognize-idioms",
     "Ops that are an idiom together become a composite, where the target takes it (`tenon "
     "idioms`).",
     recognize_idioms},
    {"flatten-fusions", "Fusions within fusions become the ops that they consist of.",
     plain<flatten_fusions>},
    {"row-blocks",
     "Large arrays that products make and use up are computed by blocks of rows, in loops.",
     compute_in_row_blocks},
    {"first-elements",
     "Sorts of which the first elements alone are used become reductions, or selections.",
     plain<first_elements>},
    {"attention", "Attentions with many scores become fusions, which keep none of them.",
     fuse_attention},
    {"fusion", "Elementwise ops, and reductions of what they give, become fusions.", fuse_elements},
    {"factor-panels",
     "Constant right factors of products become panels, which tiles read in a row.",
     lay_out_panels},
    {"split-transposes", "Transposes of short rows become two of long rows.",
     plain<split_transposes>},
    {"split-reductions", "Reductions down short columns become two, of long rows and of few.",
     split_reductions},
    {"merge-rows", "Pads and concatenations of short rows become those of long rows.",
     plain<merge_rows>},
    {"order-updates", "Moves readers of an array before its in-place updates.",
     plain<order_updates>},
    {"whole-windows", "Scatters drop a window that is partly out of range as a whole, as XLA does.",
     plain<drop_whole_windows>},
    {"dce", "Instructions without effect whose results nothing uses go.", plain<eliminate_dead>},
};
constexpr std::string_view kLoweringPasses[] = {"inline-calls", "decompose", "call-layouts",
                                                "flatten-fusions", "dce"};
constexpr std::string_view kOptimizingPasses[] = {"inline-calls",
                                                  "decompose",
                                                  "call-layouts",
                                                  "simplify",
                                                  "split-stacks",
                                                  "hoist-invariants",
                                                  "sliding-windows",
                                                  "window-choices",
                                                  "window-layouts",
                                                  "float-products",
                                                  "convolution-products",
                                                  "convolution-layouts",
                                                  "factor-layouts",
                                                  "constant-fold",
                                                  "recognize-idioms",
                                                  "algebraic-simplify",
                                                  "split-reductions",
                                                  "flatten-fusions",
                                                  "row-blocks",
                                                  "first-elements",
                                                  "attention",
                                                  "fusion",
                                                  "factor-panels",
                                                  "split-transposes",
                                                  "merge-rows",
                                                  "order-updates",
                                                  "dce"};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  const Pass* found = std::find_if(std::begin(kPasses), std::end(kPasses),
                                   [&](const Pass& pass) { return pass.name == name; });
  return found == std::end(kPasses) ? nullptr : found;
}

std::span<const std::string_view> lowering_passes() { return kLoweringPasses; }
std::span<const std::string_view> optimizing_passes() { return kOptimizingPasses; }

Status run_passes(Module& module, std::span<const std::string_view> names,
                  const PassOptions& options) {
  for (const std::string_view name : names) {
    const Pass* pass = find_pass(name);
    if (pass == nullptr) return Status(not_found("there is no pass '{}'", name));
    Result<bool> changed = pass->run(module, options);
    if (!changed) return std::move(changed.error()).in_stage(std::string(name));
    if (!*changed) continue;
    if (options.verify) {
      Status status = verify(module);
      if (!status.ok()) return std::move(status).in_stage(std::string(name));
    }
    if (options.after) options.after(*pass, module);
  }
  return {};
}

}  // namespace tenon::hlo
