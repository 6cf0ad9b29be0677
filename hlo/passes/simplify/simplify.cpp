// hlo/passes/simplify/: makes a Module simpler: rewriting, folding, common subexpressions, dead
// code.
#include "hlo/passes/pass.h"

namespace tenon::hlo {

// Each pass creates opportunities for the others: a folded condition leaves a branch, whose ops may
// then equal those around it. The bound only limits time; programs take two or three iterations.
Result<bool> simplify(Module& module, const PassOptions& options) {
  constexpr int kMostTurns = 8;
  constexpr Result<bool> (*kInTurn[])(Module&) = {share_common, reduce_carries, eliminate_dead};
  rewrite::Options rules = options.rewrites;
  rules.late = false;
  bool any = false;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    TENON_ASSIGN(bool changed, rewrite::apply_rules(module, rules));
    TENON_ASSIGN(const bool folded, fold_constants(module, options));
    changed |= folded;
    for (const auto pass : kInTurn) {
      TENON_ASSIGN(const bool here, pass(module));
      changed |= here;
    }
    if (!changed) break;
    any = true;
  }
  return any;
}

}  // namespace tenon::hlo
