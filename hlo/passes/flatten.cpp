#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// The body of a fusion in its place.
void inline_fusion(Instruction& fusion) {
  Computation& parent = *fusion.parent();
  const Computation& body = fusion.region(0);
  Cloner cloner;
  for (size_t i = 0; i < body.parameter_count(); ++i) {
    cloner.map(body.parameter(i), fusion.operand(i));
  }
  for (const Instruction& op : body) {
    if (op.code() != OpCode::kReturn) {
      parent.insert(cloner.clone(op), &fusion);
      continue;
    }
    for (uint32_t i = 0; i < fusion.result_count(); ++i) {
      fusion.replace_uses(i, cloner(op.operand(i)));
    }
    break;
  }
  parent.erase(&fusion);
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

// Lowering sees every op of a fusion, and which of them are results: what one computes is not
// computed again for another.
Result<bool> flatten_fusions(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= flatten(*function, false);
  return changed;
}

}  // namespace tenon::hlo
