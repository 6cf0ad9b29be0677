// Loop-invariant code motion: moves what a loop computes of values that do not change before it.
//
//   while(%i = %0)                       %s = sine(%t)
//     %s = sine(%t)                      while(%i = %0)
//     … dynamic_slice(%s, %i) …    ->      … dynamic_slice(%s, %i) …
#include <algorithm>
#include <optional>
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

// Ops that a kernel computes again as fast as it would load their results.
bool is_cheap(OpCode code) {
  switch (code) {
    case OpCode::kAbs:
    case OpCode::kAdd:
    case OpCode::kAnd:
    case OpCode::kClamp:
    case OpCode::kCompare:
    case OpCode::kConcatenate:
    case OpCode::kConvert:
    case OpCode::kMaximum:
    case OpCode::kMinimum:
    case OpCode::kMultiply:
    case OpCode::kNegate:
    case OpCode::kNot:
    case OpCode::kOr:
    case OpCode::kPad:
    case OpCode::kReverse:
    case OpCode::kSelect:
    case OpCode::kSubtract:
    case OpCode::kTranspose:
    case OpCode::kXor:
      return true;
    default:
      return is_free(code) || selects(code);
  }
}

// The integer that all elements are, if `value` is such a constant.
std::optional<int64_t> constant_integer(Value value) {
  const Literal* const splat = splat_of(value);
  if (splat == nullptr || !is_integer(splat->element_type())) return std::nullopt;
  return splat->get_integer(0);
}

// Whether `loop` counts from a constant up to another by ones, in few turns: it ends soon.
bool counts(const Instruction& loop) {
  constexpr int64_t kMostTurns = 4096;
  const Instruction& test = *loop.region(0).return_instruction()->operand(0).def;
  if (test.code() != OpCode::kCompare) return false;
  const auto direction = test.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
  const Value counter = test.operand(0);
  const std::optional<int64_t> end = constant_integer(test.operand(1));
  if (direction != ComparisonDirection::kLt || !end) return false;
  for (size_t i = 0; i < loop.operand_count(); ++i) {
    if (counter != loop.region(0).parameter(i)) continue;
    const std::optional<int64_t> begin = constant_integer(loop.operand(i));
    const bool is_short = begin && *begin >= 0 && *end - *begin <= kMostTurns;
    if (!is_short) return false;
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
      Sources from = sources_of(operands);
      // A region that is not worth moving would have to be copied.
      if (op.region_count() > 0 && !pays(op, from)) continue;
      sources_[&op] = std::move(from);
      found_.push_back(&op);
    }
    Sources all;
    for (const Instruction* const op : found_) add(all, sources_.at(op));
    budget_ = bytes_of(all) + kLittle;
  }

  // The values from before the loop that something is computed of, each once; the first ones, if
  // they are many.
  using Sources = std::vector<Value>;

  static void add(Sources& to, const Sources& more) {
    constexpr size_t kMost = 64;
    for (const Value each : more) {
      if (to.size() < kMost && std::ranges::find(to, each) == to.end()) to.push_back(each);
    }
  }

  Sources sources_of(const std::vector<Value>& operands) const {
    Sources all;
    for (const Value operand : operands) {
      const auto inner = sources_.find(operand.def);
      add(all, inner == sources_.end() ? Sources{operand} : inner->second);
    }
    return all;
  }

  static double bytes_of(const Sources& sources) {
    double sum = 0;
    for (const Value each : sources) sum += static_bytes(each.type());
    return sum;
  }

  static double result_bytes(const Instruction& op) {
    double sum = 0;
    for (const Type& type : op.result_types()) sum += static_bytes(type);
    return sum;
  }

  // Whether the results are worth their memory: they take no more than what they are computed of,
  // or little. Scalars cost nothing within the loop, and a launch before it; nor do cheap ops on
  // constants.
  static bool pays(const Instruction& op, const Sources& sources) {
    constexpr int64_t kFew = 64;  // Elements.
    int64_t most = 0;
    for (const Type& type : op.result_types()) most = std::max(most, static_elements(type));
    if (!selects(op.code())) {
      for (const Value each : all_operands(op)) most = std::max(most, static_elements(each.type()));
    }
    const double from = bytes_of(sources);
    if (from == 0 && is_cheap(op.code())) return false;
    return most >= kFew && result_bytes(op) <= std::max(from, kLittle);
  }

  // Whether a turn reads the results of `op` when what is chosen so far has moved.
  bool is_read_within(const Instruction& op) const {
    return std::ranges::any_of(op.uses(),
                               [&](const Use& use) { return !chosen_.contains(use.user); });
  }

  // Chooses the ops that pay, and the ones that they are computed of. Users come first, so that a
  // result that chosen ops alone read takes nothing of the budget: it is gone before the loop.
  void choose() {
    for (size_t i = found_.size(); i-- > 0;) {
      Instruction& op = *found_[i];
      const bool is_wanted = chosen_.contains(&op);
      const double kept = is_read_within(op) ? result_bytes(op) : 0;
      const bool is_worth = !is_free(op.code()) && kept <= budget_ && pays(op, sources_.at(&op));
      if (!is_wanted && !is_worth) continue;
      chosen_.insert(&op);
      if (is_worth && kept_.insert(&op).second) budget_ -= kept;
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

  static constexpr double kLittle = 1 << 16;  // Bytes.

  Computation& region_;
  Instruction& loop_;
  std::vector<Instruction*> found_;  // In order.
  std::unordered_map<const Instruction*, Sources> sources_;
  double budget_ = 0;  // Bytes that results may still take in memory.
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
