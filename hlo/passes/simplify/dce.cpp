#include "hlo/passes/pass.h"
#include "hlo/passes/simplify/dead.h"

namespace tenon::hlo {

bool erase_dead(Computation& computation) {
  bool changed = false;
  Instruction* op = computation.last();
  while (op != nullptr) {
    Instruction* previous = op->previous();
    const bool dead = op->uses().empty() && !op->has_side_effect() && op->code() != OpCode::kReturn;
    if (dead) {
      computation.erase(op);
      changed = true;
    } else {
      for (size_t i = 0; i < op->region_count(); ++i) changed |= erase_dead(op->region(i));
    }
    op = previous;
  }
  return changed;
}

bool is_pure(const Instruction& op) {
  switch (op.code()) {
    case OpCode::kParameter:
    case OpCode::kReturn:
    case OpCode::kRng:
    case OpCode::kCustomCall:
    case OpCode::kFusion:
      return false;
    default:
      break;
  }
  if (op.result_count() == 0 || op.is_ordered()) return false;
  const auto draws = [](const Instruction& inner) {
    return inner.code() == OpCode::kRng || inner.code() == OpCode::kCustomCall;
  };
  for (size_t i = 0; i < op.region_count(); ++i) {
    if (any_instruction(op.region(i), draws)) return false;
  }
  return true;
}

Result<bool> eliminate_dead(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= erase_dead(*function);
  return changed;
}

}  // namespace tenon::hlo
