#include "hlo/ir/inline.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

void inline_fusion(Instruction& fusion) {
  const std::vector<Value> results = clone_body(fusion.region(0), fusion.operands(), fusion);
  fusion.replace_all_uses(results);
  fusion.parent()->erase(&fusion);
}

bool flatten(Computation& computation, bool in_fusion) {
  bool changed = false;
  for (Instruction* op = computation.first(); op != nullptr;) {
    Instruction* next = op->next();
    for (size_t i = 0; i < op->region_count(); ++i) {
      changed |= flatten(op->region(i), in_fusion || op->code() == OpCode::kFusion);
    }
    if (in_fusion && op->code() == OpCode::kFusion) {
      inline_fusion(*op);
      changed = true;
    }
    op = next;
  }
  return changed;
}

}  // namespace

// Lowering then sees every op of a fusion, and which of them are results: a value that is computed
// for one result is not computed again for another.
Result<bool> flatten_fusions(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= flatten(*function, false);
  return changed;
}

}  // namespace tenon::hlo
