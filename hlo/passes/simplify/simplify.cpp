#include "hlo/passes/pass.h"

namespace tenon::hlo {

// Each makes work for the others: a folded condition leaves a branch, whose ops are then common
// with those around. The bound is for time alone; two or three turns are what programs take.
Result<bool> simplify(Module& module) {
  constexpr int kMostTurns = 8;
  constexpr PassFunction kInTurn[] = {apply_identities, fold_constants, share_common,
                                      reduce_carries, eliminate_dead};
  bool any = false;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    bool changed = false;
    for (const PassFunction pass : kInTurn) {
      TENON_ASSIGN(const bool here, pass(module));
      changed |= here;
    }
    if (!changed) break;
    any = true;
  }
  return any;
}

}  // namespace tenon::hlo
