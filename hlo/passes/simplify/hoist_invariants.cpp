// Loop-invariant code motion: moves what a loop computes of values that do not change before it.
//
//   while(%i = %0)                       %s = sine(%t)
//     %s = sine(%t)                      while(%i = %0)
//     … dynamic_slice(%s, %i) …    ->      … dynamic_slice(%s, %i) …
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/passes/constants.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/simplify/dead.h"

namespace tenon::hlo {
namespace {

double static_bytes(const Type& type) {
  if (!type.is_tensor() || !type.shape().is_static()) return 0;
  return static_cast<double>(type.shape().byte_size());
}

int64_t static_elements(const Type& type) {
  return type.is_tensor() && type.shape().is_static() ? type.shape().element_count() : 0;
}

// Ops that fuse into each reader: their results need not be kept.
bool is_free(OpCode code) {
  return code == OpCode::kConstant || code == OpCode::kIota || code == OpCode::kBroadcastInDim ||
         code == OpCode::kReshape;
}

// Ops that read no more of their operands than they give.
bool selects(OpCode code) {
  return code == OpCode::kSlice || code == OpCode::kDynamicSlice || code == OpCode::kGather ||
         code == OpCode::kReshape;
}

// Whether `loop` counts an integer up to a constant by ones: such a loop ends.
bool counts(const Instruction& loop) {
  const Instruction& test = *loop.region(0).return_instruction()->operand(0).def;
  if (test.code() != OpCode::kCompare) return false;
  const auto direction = test.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
  const Value counter = test.operand(0);
  const bool is_bounded = direction == ComparisonDirection::kLt &&
                          constant_of(test.operand(1)) != nullptr &&
                          is_integer(counter.type().element_type());
  if (!is_bounded) return false;
  for (size_t i = 0; i < loop.operand_count(); ++i) {
    if (counter != loop.region(0).parameter(i)) continue;
    const Instruction& next = *loop.region(1).return_instruction()->operand(i).def;
    if (next.code() != OpCode::kAdd) return false;
    const Value start = loop.region(1).parameter(i);
    return (next.operand(0) == start && is_number(next.operand(1), 1)) ||
           (next.operand(1) == start && is_number(next.operand(0), 1));
  }
  return false;
}

// Whether `op` ends for certain. The loop that it leaves may take no turn.
bool ends(const Instruction& op) {
  const auto may_run_on = [](const Instruction& inner) {
    return inner.code() == OpCode::kWhile && !counts(inner);
  };
  if (may_run_on(op)) return false;
  for (size_t i = 0; i < op.region_count(); ++i) {
    if (any_instruction(op.region(i), may_run_on)) return false;
  }
  return true;
}

// The ops of one region of a loop that are the same at each turn.
class Invariants {
 public:
  Invariants(Computation& region, Instruction& loop) : region_(region), loop_(loop) {}

  bool run() {
    find();
    choose();
    for (Instruction* const op : found_) {
      if (chosen_.contains(op)) move(*op);
    }
    return !chosen_.empty();
  }

 private:
  // Whether `value` is there before the loop, or will be.
  bool is_fixed(Value value) const {
    const Instruction& def = *value.def;
    if (def.code() == OpCode::kParameter) return !is_within(def.parent());
    return sources_.contains(&def) || !is_within(def.parent());
  }

  bool is_within(const Computation* computation) const {
    for (; computation != nullptr; computation = parent_of(*computation)) {
      if (computation == &region_) return true;
    }
    return false;
  }

  static const Computation* parent_of(const Computation& computation) {
    return computation.owner() == nullptr ? nullptr : computation.owner()->parent();
  }

  void find() {
    for (Instruction& op : region_) {
      if (!is_pure(op) || !ends(op)) continue;
      const std::vector<Value> operands = all_operands(op);
      if (!std::ranges::all_of(operands, [&](Value each) { return is_fixed(each); })) continue;
      // A region that is not worth moving would have to be copied.
      const double from = source_bytes(op);
      if (op.region_count() > 0 && !pays(op, from)) continue;
      sources_[&op] = from;
      found_.push_back(&op);
    }
  }

  // Bytes of the values from before the loop that `op` is computed of.
  double source_bytes(const Instruction& op) const {
    double sum = 0;
    for (const Value operand : all_operands(op)) {
      const auto inner = sources_.find(operand.def);
      sum += inner == sources_.end() ? static_bytes(operand.type()) : inner->second;
    }
    return sum;
  }

  // Whether the results are worth their memory: they take no more than what they are computed of,
  // or little. Scalars cost nothing within the loop, and a launch before it.
  static bool pays(const Instruction& op, double from) {
    constexpr double kLittle = 1 << 16;
    constexpr int64_t kFew = 64;  // Elements.
    double bytes = 0;
    int64_t most = 0;
    for (const Type& type : op.result_types()) {
      bytes += static_bytes(type);
      most = std::max(most, static_elements(type));
    }
    if (!selects(op.code())) {
      for (const Value each : all_operands(op)) most = std::max(most, static_elements(each.type()));
    }
    return most >= kFew && from > 0 && bytes <= std::max(from, kLittle);
  }

  // Chooses the ops that pay, and the ones that they are computed of.
  void choose() {
    for (size_t i = found_.size(); i-- > 0;) {
      Instruction& op = *found_[i];
      const bool is_wanted = chosen_.contains(&op);
      const bool is_worth = !is_free(op.code()) && pays(op, sources_.at(&op));
      if (!is_wanted && !is_worth) continue;
      chosen_.insert(&op);
      if (is_worth) kept_.insert(&op);
      for (const Value operand : op.operands()) choose(operand);
      // A region goes on using the same op.
      for (const Value captured : captured_values(op)) {
        if (choose(captured)) kept_.insert(captured.def);
      }
    }
  }

  bool choose(Value value) {
    if (!sources_.contains(value.def)) return false;
    chosen_.insert(value.def);
    return true;
  }

  // Moves `op`, or copies it where others than those that move use it and it is not worth its
  // memory.
  void move(Instruction& op) {
    const bool moves = kept_.contains(&op) || std::ranges::all_of(op.uses(), [&](const Use& use) {
                         return chosen_.contains(use.user);
                       });
    Computation& outside = *loop_.parent();
    Instruction& there = *outside.insert(moves ? region_.take(&op) : Cloner().clone(op), &loop_);
    if (!moves) copies_[&op] = &there;
    for (size_t i = 0; i < there.operand_count(); ++i) {
      const auto copy = copies_.find(there.operand(i).def);
      if (copy != copies_.end()) there.set_operand(i, {copy->second, there.operand(i).index});
    }
  }

  Computation& region_;
  Instruction& loop_;
  std::vector<Instruction*> found_;                         // In order.
  std::unordered_map<const Instruction*, double> sources_;  // With source_bytes().
  std::unordered_set<const Instruction*> chosen_, kept_;
  std::unordered_map<const Instruction*, Instruction*> copies_;
};

// Inner loops first: what they give up may move on.
bool hoist(Computation& computation) {
  bool changed = false;
  for (Instruction& op : computation) {
    for (size_t i = 0; i < op.region_count(); ++i) changed |= hoist(op.region(i));
    if (op.code() != OpCode::kWhile) continue;
    for (size_t i = 0; i < op.region_count(); ++i) changed |= Invariants(op.region(i), op).run();
  }
  return changed;
}

}  // namespace

Result<bool> hoist_invariants(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    if (!function->is_declaration()) changed |= hoist(*function);
  }
  return changed;
}

}  // namespace tenon::hlo
