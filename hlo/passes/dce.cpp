#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

bool clean(Computation& computation) {
  bool changed = false;
  Instruction* op = computation.last();
  while (op != nullptr) {
    Instruction* previous = op->previous();
    const bool dead = op->uses().empty() && !op->has_side_effect() && op->code() != OpCode::kReturn;
    if (dead) {
      computation.erase(op);
      changed = true;
    } else {
      for (size_t i = 0; i < op->region_count(); ++i) changed |= clean(op->region(i));
    }
    op = previous;
  }
  return changed;
}

}  // namespace

Result<bool> eliminate_dead(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= clean(*function);
  return changed;
}

}  // namespace tenon::hlo
