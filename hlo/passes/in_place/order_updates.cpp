// hlo/passes/in_place/: orders ops so that updates can happen in place.
//
// Moves readers of an array before the ops that change it, so that the change can be in place:
//
//   %b = dynamic_update_slice %a, …            %c = slice %a
//   %c = slice %a                       ->     %b = dynamic_update_slice %a, …
//   use %b                                     use %b
#include <unordered_map>
#include <unordered_set>

#include "hlo/lower/uses.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// The instruction of `computation` that is `user` or contains it in a region; null if there is
// none.
const Instruction* within(const Instruction* user, const Computation& computation) {
  while (user != nullptr && user->parent() != &computation) user = user->parent()->owner();
  return user;
}

// The operands that `user` may change in place, by number.
std::unordered_set<size_t> changed_operands(const Instruction& user) {
  std::unordered_set<size_t> changed;
  for (uint32_t r = 0; r < user.result_count(); ++r) {
    if (const auto operand = lower::changed_operand(user, r)) changed.insert(*operand);
  }
  return changed;
}

// The other users of the arrays that `op` changes, except those that change them too: one of these
// needs a copy.
std::unordered_set<const Instruction*> readers_of_changed(const Instruction& op) {
  std::unordered_map<const Instruction*, std::unordered_set<size_t>> changed_by;
  const auto changes = [&](const Use& use) {
    auto known = changed_by.find(use.user);
    if (known == changed_by.end()) {
      known = changed_by.emplace(use.user, changed_operands(*use.user)).first;
    }
    return known->second.contains(use.operand);
  };
  std::unordered_set<Value, ValueHash> arrays;
  for (const size_t operand : changed_operands(op)) {
    if (op.operand(operand).def->code() != OpCode::kConstant) arrays.insert(op.operand(operand));
  }
  std::unordered_set<const Instruction*> readers;
  for (const Value array : arrays) {
    for (const Use& use : array.def->uses()) {
      const bool reads = use.user->operand(use.operand) == array && !changes(use);
      if (reads) readers.insert(within(use.user, *op.parent()));
    }
  }
  readers.erase(nullptr);
  return readers;
}

// The last reader after which `op` may be placed: before any instruction that needs its result.
// Null if there is none.
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
  // Goes backwards: moving a change after a reader may allow the previous change to move too.
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

Result<bool> order_updates(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= order(*function);
  return changed;
}

}  // namespace tenon::hlo
