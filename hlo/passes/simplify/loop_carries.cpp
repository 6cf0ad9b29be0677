// Removes loop-carried values and results of branches that are not needed.
//
//   while(%i = %0, %n = %k, %j = %0, %d = %x)      while(%i = %0)
//     … %i < %n …                                    … %i < %k …
//     return %i + 1, %n, %j + 1, sine(%d)     ->     return %i + 1
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "hlo/passes/pass.h"
#include "hlo/passes/simplify/dead.h"

namespace tenon::hlo {
namespace {

// Keeps only the results with the numbers `kept`, ascending, and renumbers their uses.
void keep_results(Instruction& op, const std::vector<uint32_t>& kept) {
  std::vector<Type> types;
  std::map<uint32_t, uint32_t> number;
  for (const uint32_t r : kept) {
    number[r] = static_cast<uint32_t>(types.size());
    types.push_back(op.result_type(r));
  }
  const std::vector<Use> uses = op.uses();
  for (const Use& use : uses) {
    const uint32_t before = use.user->operand(use.operand).index;
    use.user->set_operand(use.operand, {&op, number.at(before)});
  }
  op.set_result_types(std::move(types));
}

std::vector<Value> chosen(const std::vector<Value>& values, const std::vector<uint32_t>& kept) {
  std::vector<Value> some;
  for (const uint32_t i : kept) some.push_back(values[i]);
  return some;
}

class Loop {
 public:
  explicit Loop(Instruction& op)
      : op_(op), condition_(op.region(0)), body_(op.region(1)), end_(*body_.return_instruction()) {}

  bool run() {
    bool changed = use_outside();
    changed |= share();
    changed |= drop();
    return changed;
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(op_.operand_count()); }

  // Replaces uses of an invariant carried value by the value from outside.
  bool use_outside() {
    bool changed = false;
    for (uint32_t i = 0; i < count(); ++i) {
      const Value init = op_.operand(i);
      const Value next = end_.operand(i);
      const bool fixed = next == body_.parameter(i) || next == init;
      if (!fixed || !init.type().is_tensor()) continue;
      changed |= replace(condition_.parameter(i), init);
      changed |= replace(op_.result(i), init);
      // Returning the carried value itself does not count as a use.
      end_.set_operand(i, init);
      changed |= replace(body_.parameter(i), init);
      end_.set_operand(i, body_.parameter(i));
    }
    return changed;
  }

  static bool replace(Value from, Value to) {
    if (!from.def->has_uses(from.index)) return false;
    from.def->replace_uses(from.index, to);
    return true;
  }

  // Merges carried values that have equal initial values and equal updates.
  bool share() {
    bool changed = false;
    std::vector<bool> used = op_.used_results();
    for (uint32_t i = 0; i < count(); ++i) {
      used[i] = used[i] || !body_.parameter_instruction(i).uses().empty() ||
                !condition_.parameter_instruction(i).uses().empty();
    }
    // Candidates by two hashes: carried values with similar updates, and those that become the same
    // value.
    std::unordered_map<size_t, std::vector<uint32_t>> groups;
    for (uint32_t j = 0; j < count(); ++j) {
      const size_t begin = ValueHash()(op_.operand(j)) * 31;
      std::vector<uint32_t>& changing = groups[begin + hash_of_next(end_.operand(j), j, 0)];
      const size_t same_hash = begin + ValueHash()(end_.operand(j));
      for (const std::vector<uint32_t>* group : {&changing, &groups[same_hash]}) {
        const auto first = std::ranges::find_if(*group, [&](uint32_t i) { return equal(i, j); });
        if (!used[j] || first == group->end()) continue;
        changed |= merge(*first, j);
        used[*first] = true;
        used[j] = false;
      }
      groups[begin + hash_of_next(end_.operand(j), j, 0)].push_back(j);
      groups[same_hash].push_back(j);
    }
    return changed;
  }

  bool equal(uint32_t i, uint32_t j) const {
    return op_.operand(i) == op_.operand(j) && alike(end_.operand(i), end_.operand(j), i, j, 0);
  }

  // Afterwards carried value `j` is only returned; drop() removes it.
  bool merge(uint32_t i, uint32_t j) {
    bool changed = replace(condition_.parameter(j), condition_.parameter(i));
    changed |= replace(op_.result(j), op_.result(i));
    changed |= replace(body_.parameter(j), body_.parameter(i));
    end_.set_operand(j, end_.operand(i));
    return changed;
  }

  // Equal for values that are `alike`.
  size_t hash_of_next(Value value, uint32_t carry, int depth) const {
    constexpr int kMostDepth = 3;  // Enough to distinguish most.
    const Instruction& op = *value.def;
    if (value == body_.parameter(carry)) return 1;
    const bool is_outside = op.parent() != &body_ || op.code() == OpCode::kParameter;
    if (is_outside) return ValueHash()(value);
    size_t hash = static_cast<size_t>(op.code()) * 31 + value.index;
    if (depth == kMostDepth) return hash;
    for (size_t k = 0; k < op.operand_count(); ++k) {
      hash = hash * 31 + hash_of_next(op.operand(k), carry, depth + 1);
    }
    return hash;
  }

  // Whether `a` of carried value `i` equals `b` of carried value `j`, if the two were equal before.
  bool alike(Value a, Value b, uint32_t i, uint32_t j, int depth) const {
    constexpr int kMostDepth = 8;
    if (a == b || (a == body_.parameter(i) && b == body_.parameter(j))) return true;
    const Instruction& x = *a.def;
    const Instruction& y = *b.def;
    const bool comparable =
        depth < kMostDepth && a.index == b.index && x.code() == y.code() && x.parent() == &body_ &&
        y.parent() == &body_ && x.code() != OpCode::kParameter && x.region_count() == 0 &&
        !x.is_ordered() && x.code() != OpCode::kCustomCall &&
        x.operand_count() == y.operand_count() && x.result_types() == y.result_types() &&
        x.attributes() == y.attributes();
    if (!comparable) return false;
    for (size_t k = 0; k < x.operand_count(); ++k) {
      if (!alike(x.operand(k), y.operand(k), i, j, depth + 1)) return false;
    }
    return true;
  }

  // Removes carried values that are needed neither outside nor by the condition nor by an effect,
  // directly or through other carried values.
  bool drop() {
    std::vector<uint32_t> kept;
    const std::vector<bool> needed = this->needed();
    for (uint32_t i = 0; i < count(); ++i) {
      if (needed[i]) kept.push_back(i);
    }
    if (kept.empty() || kept.size() == count()) return false;
    end_.set_operands(chosen(end_.operands(), kept));
    erase_dead(body_);
    condition_.keep_parameters(kept);
    body_.keep_parameters(kept);
    op_.set_operands(chosen(op_.operands(), kept));
    keep_results(op_, kept);
    return true;
  }

  std::vector<bool> needed() {
    std::vector<bool> needed(count());
    std::unordered_set<const Instruction*> seen;
    std::vector<const Instruction*> open;
    const auto need = [&](const Instruction* op) {
      // A value used within a region of the body counts as used by the op with the region.
      if (op->parent() == &body_ && seen.insert(op).second) open.push_back(op);
    };
    const auto need_carry = [&](uint32_t i) {
      if (needed[i]) return;
      needed[i] = true;
      need(end_.operand(i).def);
    };
    const std::vector<bool> used = op_.used_results();
    std::unordered_map<const Instruction*, uint32_t> carry_of;
    for (uint32_t i = 0; i < count(); ++i) {
      carry_of.emplace(&body_.parameter_instruction(i), i);
      const bool state = !op_.operand_type(i).is_tensor();
      if (state || used[i] || !condition_.parameter_instruction(i).uses().empty()) {
        need_carry(i);
      }
    }
    for (const Instruction& op : body_) {
      if (op.has_side_effect()) need(&op);
    }
    while (!open.empty()) {
      const Instruction* const op = open.back();
      open.pop_back();
      if (op->code() == OpCode::kParameter) {
        need_carry(carry_of.at(op));
        continue;
      }
      for (const Value operand : all_operands(*op)) need(operand.def);
    }
    return needed;
  }

  Instruction& op_;
  Computation& condition_;
  Computation& body_;
  Instruction& end_;
};

// If all branches return the same outside value for a result, replaces the result by that value.
bool use_outside(Instruction& op) {
  bool changed = false;
  const std::vector<bool> used = op.used_results();
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    const Value given = op.region(0).return_instruction()->operand(r);
    bool alike = used[r] && given.type().is_tensor() && given.def->parent() != &op.region(0);
    for (size_t i = 0; i < op.region_count(); ++i) {
      alike = alike && op.region(i).return_instruction()->operand(r) == given;
    }
    if (!alike) continue;
    op.replace_uses(r, given);
    changed = true;
  }
  return changed;
}

bool drop_results(Instruction& op) {
  std::vector<uint32_t> kept;
  const std::vector<bool> used = op.used_results();
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    if (used[r] || !op.result_type(r).is_tensor()) kept.push_back(r);
  }
  // If no result of an op is used, dead code elimination removes the whole op, if possible.
  if (kept.size() == op.result_count() || kept.empty()) return false;
  for (size_t i = 0; i < op.region_count(); ++i) {
    Instruction& end = *op.region(i).return_instruction();
    end.set_operands(chosen(end.operands(), kept));
    erase_dead(op.region(i));
  }
  keep_results(op, kept);
  return true;
}

// Inner loops and branches first: values that they no longer need may be unneeded outside too.
bool reduce(Computation& computation) {
  bool changed = false;
  for (Instruction& op : computation) {
    for (size_t r = 0; r < op.region_count(); ++r) changed |= reduce(op.region(r));
    if (op.code() == OpCode::kWhile && op.operand_count() > 0) changed |= Loop(op).run();
    if (op.code() == OpCode::kIf || op.code() == OpCode::kCase) {
      changed |= use_outside(op);
      changed |= drop_results(op);
    }
  }
  return changed;
}

}  // namespace

Result<bool> reduce_carries(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= reduce(*function);
  return changed;
}

}  // namespace tenon::hlo
