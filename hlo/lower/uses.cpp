#include "hlo/lower/uses.h"

#include <unordered_set>

namespace tenon::hlo::lower {

bool ends_at(Value value, const Instruction& op) {
  const Computation* const computation = op.parent();
  const bool argument =
      value.def->code() == OpCode::kParameter && value.def->parent()->owner() == nullptr;
  if (value.def->code() == OpCode::kConstant || argument) return false;
  // What comes from outside of a loop's body is there in its next turn too.
  if (value.def->parent() != computation) return false;
  std::unordered_set<const Instruction*> users;
  for (const Use& use : value.def->uses()) {
    if (use.user->operand(use.operand) != value) continue;
    const Instruction* user = use.user;
    while (user->parent() != computation) user = user->parent()->owner();
    users.insert(user);
  }
  for (const Instruction* at = op.next(); at != nullptr; at = at->next()) {
    if (users.contains(at)) return false;
  }
  return true;
}

}  // namespace tenon::hlo::lower
