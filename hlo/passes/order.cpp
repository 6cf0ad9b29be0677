// What reads an array comes before what changes it, so that the change may be in place:
//
//   %b = dynamic_update_slice %a, …            %c = slice %a
//   %c = slice %a                       ->     %b = dynamic_update_slice %a, …
//   use %b                                     use %b
#include <unordered_set>

#include "hlo/lower/uses.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// The instruction of `computation` that `user` is, or is in a region of; null if it is in neither.
const Instruction* within(const Instruction* user, const Computation& computation) {
  while (user != nullptr && user->parent() != &computation) user = user->parent()->owner();
  return user;
}

// Whether use `i` of `user` is one that it may change.
bool changes(const Instruction& user, size_t i) {
  for (uint32_t r = 0; r < user.result_count(); ++r) {
    if (lower::changed_operand(user, r) == i) return true;
  }
  return false;
}

// What else uses an array that `op` changes, but for what changes it too: one of those needs a
// copy.
std::unordered_set<const Instruction*> readers_of_changed(const Instruction& op) {
  std::unordered_set<const Instruction*> readers;
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    const std::optional<size_t> operand = lower::changed_operand(op, r);
    if (!operand || op.operand(*operand).def->code() == OpCode::kConstant) continue;
    const Value array = op.operand(*operand);
    for (const Use& use : array.def->uses()) {
      const bool reads =
          use.user->operand(use.operand) == array && !changes(*use.user, use.operand);
      if (reads) readers.insert(within(use.user, *op.parent()));
    }
  }
  readers.erase(nullptr);
  return readers;
}

// The last of the readers that `op` may stand behind: before anything that needs its result. Null
// if there is none.
const Instruction* last_reader(const Instruction& op) {
  const auto readers = readers_of_changed(op);
  if (readers.empty()) return nullptr;
  const Instruction* first_user = nullptr;
  for (const Use& use : op.uses()) {
    const Instruction* const user = within(use.user, *op.parent());
    if (first_user == nullptr || user->comes_before(*first_user)) first_user = user;
  }
  const Instruction* last = nullptr;
  for (const Instruction* reader : readers) {
    const bool between = op.comes_before(*reader) && reader->code() != OpCode::kReturn &&
                         (first_user == nullptr || reader->comes_before(*first_user));
    if (between && (last == nullptr || last->comes_before(*reader))) last = reader;
  }
  return last;
}

bool order(Computation& computation) {
  bool changed = false;
  // From the end on: a change that waits for a reader may let the one before it wait too.
  for (Instruction* op = computation.last(); op != nullptr;) {
    Instruction* const previous = op->previous();
    for (size_t i = 0; i < op->region_count(); ++i) changed |= order(op->region(i));
    const Instruction* const reader = op->is_ordered() ? nullptr : last_reader(*op);
    if (reader != nullptr) {
      computation.insert(computation.take(op), reader->next());
      changed = true;
    }
    op = previous;
  }
  return changed;
}

}  // namespace

Result<bool> order_changes(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= order(*function);
  return changed;
}

}  // namespace tenon::hlo
