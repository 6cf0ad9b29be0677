#include "hlo/passes/fusion/fuse.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/builder/builder.h"

namespace tenon::hlo {
namespace {

using Set = std::unordered_set<const Instruction*>;

bool uses_any(const Instruction& op, const Set& set) {
  if (set.empty()) return false;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (set.contains(op.operand(i).def)) return true;
  }
  if (op.region_count() == 0) return false;
  return std::ranges::any_of(captured_values(op),
                             [&](Value value) { return set.contains(value.def); });
}

// The instruction of `computation` that is `user` or contains it.
const Instruction* outermost(const Instruction* user, const Computation* computation) {
  while (user != nullptr && user->parent() != computation) user = user->parent()->owner();
  return user;
}

class Fuser {
 public:
  Fuser(const std::vector<Instruction*>& ops, std::string kind) : kind_(std::move(kind)) {
    for (Instruction* op : ops) {
      if (op->code() != OpCode::kConstant) set_.insert(op);
      computation_ = op->parent();
    }
  }

  Result<Instruction*> run() {
    TENON_TRY(check());
    TENON_TRY(order());
    auto fusion = std::make_unique<Instruction>(OpCode::kFusion, inputs(), std::vector<Type>{});
    if (!kind_.empty()) fusion->mutable_attributes().set(AttrKey::fusion_kind, kind_);
    fusion->set_location(ordered_.back()->location());
    fill(*fusion);
    Instruction* inserted = computation_->insert(std::move(fusion), ordered_.back()->next());
    replace(*inserted);
    return inserted;
  }

 private:
  Status check() const {
    if (set_.empty()) return invalid_argument("fuse: there is nothing to fuse");
    for (const Instruction* op : set_) {
      if (op->parent() != computation_) {
        return invalid_argument("fuse: {} is of another computation", op->name());
      }
      if (op->is_ordered() || op->code() == OpCode::kReturn) {
        return invalid_argument("fuse: {} has an effect", op->name());
      }
    }
    return {};
  }

  static bool is_before(const Instruction* a, const Instruction* b) { return a->comes_before(*b); }

  // Moves instructions that need a result after the last fused instruction, and with them those
  // with an effect that follow a moved effect.
  Status order() {
    for (const Instruction* op : set_) ordered_.push_back(const_cast<Instruction*>(op));
    std::ranges::sort(ordered_, is_before);
    TENON_ASSIGN(std::vector<Instruction*> moved, needing());
    const auto effect = std::ranges::find_if(moved, &Instruction::is_ordered);
    if (effect != moved.end()) {
      TENON_ASSIGN(moved, needing_or_behind(**effect));
    }
    Instruction* const before = ordered_.back()->next();
    for (Instruction* op : moved) computation_->insert(computation_->take(op), before);
    return {};
  }

  // The instructions before the last fused one that need a result of the fusion, in order.
  Result<std::vector<Instruction*>> needing() {
    Set seen;
    std::vector<Instruction*> found;
    std::vector<const Instruction*> rest(ordered_.begin(), ordered_.end());
    while (!rest.empty()) {
      const Instruction* const op = rest.back();
      rest.pop_back();
      for (const Use& use : op->uses()) {
        auto* const user = const_cast<Instruction*>(outermost(use.user, computation_));
        if (set_.contains(user)) {
          if (set_.contains(op)) continue;
          return invalid_argument("fuse: {} needs an instruction that needs the fusion",
                                  user->name());
        }
        if (!user->comes_before(*ordered_.back()) || !seen.insert(user).second) continue;
        found.push_back(user);
        rest.push_back(user);
      }
    }
    std::ranges::sort(found, is_before);
    return found;
  }

  // The same, and the instructions with an effect after `effect`, which moves, and their users.
  Result<std::vector<Instruction*>> needing_or_behind(const Instruction& effect) {
    Set behind;
    std::vector<Instruction*> found;
    for (Instruction* op = ordered_.front(); op != ordered_.back()->next(); op = op->next()) {
      if (set_.contains(op)) {
        if (!uses_any(*op, behind)) continue;
        return invalid_argument("fuse: {} needs an instruction that needs the fusion", op->name());
      }
      const bool waits = op->is_ordered() && effect.comes_before(*op);
      if (!uses_any(*op, set_) && !uses_any(*op, behind) && !waits) continue;
      behind.insert(op);
      found.push_back(op);
    }
    return found;
  }

  std::vector<Value> inputs() {
    for (const Instruction* op : ordered_) {
      for (const Value value : all_operands(*op)) {
        const bool known = std::find(inputs_.begin(), inputs_.end(), value) != inputs_.end();
        const bool constant = value.def->code() == OpCode::kConstant;
        if (!set_.contains(value.def) && !constant && !known) inputs_.push_back(value);
      }
    }
    return inputs_;
  }

  bool is_used_outside(Value value) const {
    return std::any_of(value.def->uses().begin(), value.def->uses().end(), [&](const Use& use) {
      return use.user->operand(use.operand) == value &&
             !set_.contains(outermost(use.user, computation_));
    });
  }

  void fill(Instruction& fusion) {
    Computation& body = fusion.add_region();
    Cloner cloner;
    for (const Value input : inputs_) cloner.map(input, body.add_parameter(input.type()));
    // Constants are copied, so that their other users still see a constant.
    Set copied;
    for (const Instruction* op : ordered_) {
      for (const Value value : all_operands(*op)) {
        if (value.def->code() != OpCode::kConstant || !copied.insert(value.def).second) continue;
        body.insert(cloner.clone(*value.def));
      }
    }
    std::vector<Value> inner;
    std::vector<Type> types;
    for (Instruction* op : ordered_) {
      Instruction* copy = body.insert(cloner.clone(*op));
      for (uint32_t r = 0; r < op->result_count(); ++r) {
        if (!is_used_outside(op->result(r))) continue;
        results_.push_back(op->result(r));
        inner.push_back(copy->result(r));
        types.push_back(op->result_type(r));
      }
    }
    body.insert(std::make_unique<Instruction>(OpCode::kReturn, inner, std::vector<Type>{}));
    fusion.set_result_types(std::move(types));
  }

  void replace(Instruction& fusion) {
    for (uint32_t r = 0; r < results_.size(); ++r) {
      results_[r].def->replace_uses(results_[r].index, fusion.result(r));
    }
    for (auto op = ordered_.rbegin(); op != ordered_.rend(); ++op) computation_->erase(*op);
  }

  Set set_;
  std::string kind_;
  Computation* computation_ = nullptr;
  std::vector<Instruction*> ordered_;
  std::vector<Value> inputs_;
  std::vector<Value> results_;
};

}  // namespace

Result<Instruction*> fuse(const std::vector<Instruction*>& ops, std::string kind) {
  return Fuser(ops, std::move(kind)).run();
}

}  // namespace tenon::hlo
