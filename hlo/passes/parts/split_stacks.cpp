// Arrays [n, 3] that a program stacks from arrays [n] and takes apart again become these arrays:
// through elementwise ops, through what loops carry and the arrays that they collect. An element of
// a stack asks which part it belongs to, and lanes that disagree compute all of them; a part lies a
// few elements apart in memory.
//
//   %s = concatenate(%x, %y) : [n,2]
//   %t = multiply(%s, %k)                      %t0 = multiply(%x, %k0)
//   … slice(%t) [:, 0:1] …            ->       %t1 = multiply(%y, %k1)
//
// Values that must be split together form a group. A group is split if fewer elements are stacked
// and taken apart afterwards, counted for each turn of the loops around them.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/lower/counted_loop.h"
#include "hlo/passes/parts/parts.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr double kUnknownTurns = 32;
constexpr double kWithinLoop = 1.5;  // A whole array is stacked at once in less time.
constexpr double kLeastGain = 1.25;
constexpr double kLeastShare = 1.0 / 32;  // Of what is computed: more code is worth more time.
constexpr int64_t kMostNewOps = 4000;     // In a group.
constexpr int kMostRounds = 4;            // Parts may have parts: matrices [n, 3, 3].

// The names of a value that a loop carries: before it, within it and behind it.
struct CarriedValue {
  Value init, in_condition, in_body, next, result;
};

CarriedValue carried(Instruction& loop, uint32_t i) {
  return {loop.operand(i), loop.region(0).parameter(i), loop.region(1).parameter(i),
          loop.region(1).return_instruction()->operand(i), loop.result(i)};
}

bool is_body_end(const Instruction& op) {
  const Instruction* owner = op.parent()->owner();
  return op.code() == OpCode::kReturn && owner != nullptr && owner->code() == OpCode::kWhile &&
         &owner->region(1) == op.parent();
}

bool is_parameter(Value value) { return value.def->code() == OpCode::kParameter; }

// Whether the value belongs to a loop: its name within the loop or behind it.
bool is_carried(Value value) {
  if (value.def->code() == OpCode::kWhile) return true;
  const Instruction* owner = is_parameter(value) ? value.def->parent()->owner() : nullptr;
  return owner != nullptr && owner->code() == OpCode::kWhile;
}

double turns_of(const Instruction& loop) {
  const std::optional<int64_t> known = lower::known_turns(loop);
  return known ? static_cast<double>(*known) : kUnknownTurns;
}

// The values with parts, in groups, and which groups are worth splitting.
class StackGroups {
 public:
  explicit StackGroups(Computation& function) {
    collect(function, 1);
    for (const Value value : values_) count(value);
  }

  bool any() const {
    return std::ranges::any_of(costs_, [](const auto& cost) { return cost.second.is_worth(); });
  }
  bool is_split(Value value) {
    const auto found = ids_.find(value);
    return found != ids_.end() && costs_[root(found->second)].is_worth();
  }
  // Whether the user of a value that is split needs no array as a whole.
  bool is_read_in_parts(const Use& use) {
    return may_be_read_in_parts(use) && (!stacks(*use.user) || is_split(use.user->result()));
  }

 private:
  struct SplitCost {
    double before = 0;  ///< Elements that are stacked or taken apart.
    double after = 0;
    double computed = 0;  ///< Elements of elementwise ops.
    int64_t ops = 0;
    bool is_worth() const {
      return before > kLeastGain * after && before - after > kLeastShare * computed &&
             ops <= kMostNewOps;
    }
  };

  size_t id(Value value) {
    const auto [at, is_new] = ids_.try_emplace(value, values_.size());
    if (is_new) {
      values_.push_back(value);
      parents_.push_back(at->second);
    }
    return at->second;
  }
  size_t root(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void unite(Value a, Value b) {
    const size_t first = root(id(a)), second = root(id(b));
    parents_[std::max(first, second)] = std::min(first, second);
  }

  void collect(Computation& computation, double turns) {
    turns_[&computation] = turns;
    for (size_t i = 0; i < computation.parameter_count(); ++i) {
      if (parts_of(computation.parameter(i).type()) > 0) id(computation.parameter(i));
    }
    for (Instruction& op : computation) {
      const bool is_loop = op.code() == OpCode::kWhile;
      for (uint32_t i = 0; i < op.result_count(); ++i) {
        if (parts_of(op.result_type(i)) == 0) continue;
        id(op.result(i));
        if (!is_loop) continue;
        const CarriedValue c = carried(op, i);
        for (const Value value : {c.init, c.in_condition, c.in_body, c.next})
          unite(c.result, value);
      }
      if (const auto operands = operands_in_parts(op)) {
        for (const uint32_t i : *operands) {
          if (parts_of(op.operand_type(i)) > 0) unite(op.result(), op.operand(i));
        }
      }
      for (uint32_t i = 1; i < arrays_taken_apart(op); ++i) unite(op.operand(0), op.operand(i));
      if (op.code() == OpCode::kFusion) continue;
      const double inside = is_loop ? turns * turns_of(op) * kWithinLoop : turns;
      for (size_t r = 0; r < op.region_count(); ++r) collect(op.region(r), inside);
    }
  }

  double elements(const Type& type, const Instruction& at) {
    return static_cast<double>(element_count(type.dims())) * turns_[at.parent()];
  }

  void count(Value value) {
    SplitCost& cost = costs_[root(ids_[value])];
    const Instruction& op = *value.def;
    const double size = elements(value.type(), op);
    const bool in_parts = !is_parameter(value) && operands_in_parts(op).has_value();
    if (in_parts) {
      cost.ops += parts_of(value.type());
      if (stacks(op)) cost.before += size;
      if (op.info().fusion == FusionKind::kElementwise) cost.computed += size;
    } else if (!is_carried(value) && op.code() != OpCode::kConstant) {
      cost.after += size;
    }
    bool as_a_whole = false;
    for (const Use& use : op.uses()) {
      if (use.user->operand(use.operand) != value) continue;
      if (use.operand < arrays_taken_apart(*use.user)) {
        if (op.code() == OpCode::kIota) continue;  // Places beside values: nothing lies in memory.
        const bool one = use.user->code() == OpCode::kSlice;
        cost.before += elements(one ? use.user->result_type() : value.type(), *use.user);
        if (one && use.user->result_type().dims().back() > 1)
          cost.after += elements(use.user->result_type(), *use.user);
      } else {
        as_a_whole |= !may_be_read_in_parts(use);
      }
    }
    if (as_a_whole && (in_parts || is_carried(value))) cost.after += size;
  }

  // Whether the user needs no array as a whole if its own result is split.
  static bool may_be_read_in_parts(const Use& use) {
    if (use.user->code() == OpCode::kWhile || is_body_end(*use.user) || stacks(*use.user))
      return true;
    const auto operands = operands_in_parts(*use.user);
    return operands && std::ranges::find(*operands, use.operand) != operands->end();
  }

  std::unordered_map<Value, size_t, ValueHash> ids_;
  std::vector<Value> values_;
  std::vector<size_t> parents_;
  std::unordered_map<size_t, SplitCost> costs_;
  std::unordered_map<const Computation*, double> turns_;
};

class StackSplitter {
 public:
  explicit StackSplitter(StackGroups& groups) : groups_(groups) {}

  Status run(Computation& computation) {
    for (Instruction* op = computation.first(); op != nullptr && status_.ok();) {
      Instruction* const next = op->next();
      if (op->code() == OpCode::kWhile) {
        split_loop(*op);
      } else if (op->code() != OpCode::kFusion) {
        for (size_t r = 0; r < op->region_count(); ++r) TENON_TRY(run(op->region(r)));
        if (arrays_taken_apart(*op) > 0 && groups_.is_split(op->operand(0))) {
          take_apart(*op);
        } else if (operands_in_parts(*op) && groups_.is_split(op->result())) {
          split(*op);
        }
      }
      op = next;
    }
    return status_;
  }

 private:
  template <class Make>
  void build(Computation& computation, Instruction* before, const Location& location,
             const Make& make) {
    Builder b(computation, before);
    b.set_location(location);
    make(b);
    if (status_.ok()) status_ = b.status();
  }

  // A part of any value; of one that no op here has split by a slice behind its definition.
  Value part(Value value, int64_t number) {
    std::vector<Value>& parts = parts_[value];
    if (!parts.empty()) return parts[static_cast<size_t>(number)];
    Instruction& op = *value.def;
    Instruction* const before = is_parameter(value) ? op.parent()->first() : op.next();
    const Dims dims = value.type().dims();
    build(*op.parent(), before, op.location(), [&](Builder& b) {
      for (int64_t i = 0; i < dims.back(); ++i) {
        I64s start(dims.size(), 0), limit = dims;
        start.back() = i;
        limit.back() = i + 1;
        const Value column = b.slice(value, start, limit);
        slices_.insert(column.def);
        parts.push_back(b.reshape(column, Dims(dims.begin(), dims.end() - 1)));
      }
    });
    return parts[static_cast<size_t>(number)];
  }
  PartOf part_of() {
    return [this](Value value, int64_t number) { return part(value, number); };
  }

  void split(Instruction& op) {
    std::vector<Value> parts;
    build(*op.parent(), &op, op.location(), [&](Builder& b) {
      for (int64_t i = 0; i < parts_of(op.result_type()); ++i)
        parts.push_back(part_of_result(b, op, i, part_of()));
    });
    parts_[op.result()] = parts;
    stack_for_others(op.result(), *op.parent(), &op);
  }

  void take_apart(Instruction& op) {
    if (slices_.contains(&op)) return;
    std::vector<Value> made;
    build(*op.parent(), &op, op.location(),
          [&](Builder& b) { made = results_of_parts(b, op, part_of()); });
    if (!status_.ok()) return;
    op.replace_all_uses(made);
    op.parent()->erase(&op);
  }

  // The array as a whole, before `before`, for those that need it.
  void stack_for_others(Value value, Computation& computation, Instruction* before) {
    std::vector<Use> whole;
    for (const Use& use : value.def->uses()) {
      if (use.user->operand(use.operand) != value) continue;
      const bool in_parts =
          use.operand < arrays_taken_apart(*use.user) || groups_.is_read_in_parts(use);
      if (!in_parts) whole.push_back(use);
    }
    if (whole.empty() || !status_.ok()) return;
    build(computation, before, value.def->location(), [&](Builder& b) {
      const Value made = stacked(b, parts_.at(value));
      if (!b.ok()) return;
      for (const Use& use : whole) use.user->set_operand(use.operand, made);
    });
  }

  // Adds the parts of carried values; what carries the arrays is then dead.
  void split_loop(Instruction& op) {
    std::vector<uint32_t> split;
    std::vector<Value> inits = op.operands();
    std::vector<Type> types = op.result_types();
    const auto count = static_cast<uint32_t>(inits.size());
    for (uint32_t i = 0; i < count; ++i) {
      const CarriedValue c = carried(op, i);
      if (!groups_.is_split(c.result)) continue;
      split.push_back(i);
      for (int64_t p = 0; p < parts_of(c.result.type()); ++p) {
        inits.push_back(part(c.init, p));
        types.push_back(inits.back().type());
        parts_[c.in_condition].push_back(op.region(0).add_parameter(types.back()));
        parts_[c.in_body].push_back(op.region(1).add_parameter(types.back()));
        parts_[c.result].push_back(op.result(static_cast<uint32_t>(types.size() - 1)));
      }
    }
    op.set_operands(inits);
    op.set_result_types(types);
    for (const size_t r : {0, 1}) {
      for (const uint32_t i : split)
        stack_for_others(op.region(r).parameter(i), op.region(r), op.region(r).first());
      if (status_.ok()) status_ = run(op.region(r));
    }
    if (!status_.ok()) return;
    Instruction& end = *op.region(1).return_instruction();
    std::vector<Value> next = end.operands();
    for (const uint32_t i : split) {
      for (int64_t p = 0; p < parts_of(next[i].type()); ++p) next.push_back(part(next[i], p));
    }
    end.set_operands(next);
    for (const uint32_t i : split) stack_for_others(op.result(i), *op.parent(), op.next());
  }

  StackGroups& groups_;
  std::unordered_map<Value, std::vector<Value>, ValueHash> parts_;
  std::unordered_set<const Instruction*> slices_;  ///< Those that made parts.
  Status status_;
};

}  // namespace

Result<bool> split_stacks(Module& module, const PassOptions& options) {
  bool changed = false;
  for (int round = 0; round < kMostRounds; ++round) {
    bool again = false;
    for (const auto& function : module.functions()) {
      if (function->is_declaration()) continue;
      StackGroups groups(*function);
      if (!groups.any()) continue;
      TENON_TRY(StackSplitter(groups).run(*function));
      again = true;
    }
    if (!again) break;
    changed = true;
    TENON_TRY(simplify(module, options));
  }
  return changed;
}

}  // namespace tenon::hlo
