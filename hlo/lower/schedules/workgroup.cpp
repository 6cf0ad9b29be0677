#include "hlo/lower/schedules/workgroup.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_set>

#include "hlo/lower/counted_loop.h"
#include "hlo/lower/elements/branches.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/scattering/scatter.h"
#include "hlo/lower/schedules/schedules.h"
#include "hlo/lower/uses.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

// Whether `op` reads `value`, if at all, only at the index of the element that it computes, with
// the same type.
bool reads_in_place(const Instruction& op, Value value) {
  const std::vector<Value> operands = all_operands(op);
  if (std::ranges::find(operands, value) == operands.end()) return true;
  const auto same_index = [](const Instruction& each, Value operand) {
    return each.info().category == Category::kElementwise &&
           each.result_type().dims() == operand.type().dims();
  };
  if (op.code() != OpCode::kFusion) return same_index(op, value);
  std::unordered_set<const Instruction*> made_of_it;
  const Computation& body = op.region(0);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand(i) == value) made_of_it.insert(&body.parameter_instruction(i));
  }
  for (const Instruction& inner : body) {
    for (const Value operand : all_operands(inner)) {
      if (inner.code() == OpCode::kReturn || !made_of_it.contains(operand.def)) continue;
      if (!same_index(inner, operand)) return false;
      made_of_it.insert(&inner);
    }
  }
  return true;
}

class Workgroup {
 public:
  explicit Workgroup(KernelMaker& maker) : e_(maker.e()), b_(maker.b()) {}

  /// States that array `i` of the state of `loop` is already in `memory`.
  void give(const Instruction& loop, uint32_t i, MemoryId memory) { given_[{&loop, i}] = memory; }

  /// Computes the results of `op`: arrays into scratch or into given memory; numbers are bound.
  void control(const Instruction& op) {
    if (op.code() == OpCode::kWhile) return loop(op);
    branches(op);
  }

  /// Copies a value to memory of its type.
  void store(Value value, MemoryId memory) {
    if (is_number(value.type())) {
      return e_.store(number(value), memory, zeros(value.type()));
    }
    if (element_count(value.type().dims()) == 0) return;
    b_.lanes(value.type().dims(),
             [&](const Values& index) { e_.store(e_.element(value, index), memory, index); });
  }

 private:
  static bool is_array(const Type& type) { return !is_number(type); }

  Values zeros(const Type& type) const {
    return Values(static_cast<size_t>(type.rank()), b_.index(0));
  }
  // The only element of a value that is not an array.
  Element number(Value value) { return e_.element(value, zeros(value.type())); }

  MemoryId scratch(const Type& type) {
    return b_.scratch("s", memory_type(type), memory_dims(type));
  }

  // States that `value` is in this scratch memory.
  void hold(Value value, MemoryId memory) {
    e_.bind(value, memory);
    held_[memory] = value;
  }

  // Whether `op` may overwrite `memory` with a result: no later op reads the value in it.
  bool may_take(const Instruction& op, Value result, MemoryId memory) const {
    const auto held = held_.find(memory);
    return held != held_.end() && held->second.type() == result.type() &&
           ends_at(held->second, op) && reads_in_place(op, held->second);
  }

  // Memory for a result of `op`, which one loop computes: that of the state that it becomes, that
  // of an operand that it overwrites, or new memory; none of those in `taken`.
  MemoryId memory_for(const Instruction& op, Value result,
                      const std::vector<MemoryId>& taken = {}) {
    const auto is_free = [&](MemoryId memory) {
      return std::ranges::find(taken, memory) == taken.end() && may_take(op, result, memory);
    };
    const Instruction* const end = op.parent()->return_instruction();
    const auto state = states_.find(op.parent());
    for (const Use& use : op.uses()) {
      if (state == states_.end() || use.user != end || end->operand(use.operand) != result)
        continue;
      const MemoryId memory = state->second[use.operand];
      if (is_free(memory)) return memory;
    }
    for (const Value operand : op.operands()) {
      const MemoryId memory = e_.memory_of(operand);
      if (is_free(memory) && held_[memory] == operand) return memory;
    }
    return scratch(result.type());
  }

  // The memory of the array that result `r` of `op` updates, if the update may be in place.
  MemoryId changed_memory(const Instruction& op, uint32_t r) const {
    const std::optional<size_t> operand = changed_operand(op, r);
    if (!operand || !is_array(op.result_type(r)) || !may_change(op, *operand)) {
      return kernel::kNone;
    }
    const MemoryId memory = e_.memory_of(op.operand(*operand));
    const auto held = held_.find(memory);
    const bool is_held = held != held_.end() && held->second == op.operand(*operand);
    return is_held ? memory : kernel::kNone;
  }

  // Stores only the slice of a dynamic_update_slice whose array has no later readers; returns false
  // for any other op.
  bool update_in_place(const Instruction& op) {
    if (op.code() != OpCode::kDynamicUpdateSlice) return false;
    const MemoryId memory = changed_memory(op, 0);
    if (memory == kernel::kNone) return false;
    const Value part = op.operand(1);
    const Dims& sizes = part.type().dims();
    const auto update = [&](const Values& index) {
      Values to = clamped_starts(e_, op, 2, op.result_type().dims(), sizes);
      for (size_t i = 0; i < to.size(); ++i) to[i] = b_.add(to[i], index[i]);
      e_.store(e_.element(part, index), memory, to);
    };
    if (is_number(part.type())) {
      update(zeros(part.type()));
    } else if (element_count(sizes) > 0) {
      b_.lanes(sizes, update);
    }
    hold({const_cast<Instruction*>(&op), 0}, memory);
    return true;
  }

  // Emits a scatter, into the memory of an array without later readers or into a copy; returns
  // false for any other op.
  bool scatter(const Instruction& op) {
    if (op.code() != OpCode::kScatter) return false;
    std::vector<MemoryId> memories;
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      memories.push_back(changed_memory(op, r));
      if (memories[r] != kernel::kNone) continue;
      memories[r] = scratch(op.result_type(r));
      store(op.operand(r), memories[r]);
    }
    if (element_count(op.operand_type(op.result_count() + 1).dims()) > 0) {
      const ScatterEmitter updates(op);
      updates.in_order(
          e_, updates.all_batches(e_.b), updates.window(), [](const Values& lane) { return lane; },
          [&](const Values& to, const Values& from) { updates.combine(e_, memories, to, from); });
    }
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      hold({const_cast<Instruction*>(&op), r}, memories[r]);
    }
    return true;
  }

  void instructions(const Computation& region) {
    for (const Instruction& op : region) {
      if (op.code() == OpCode::kReturn) return;
      if (is_control(op.code())) {
        control(op);
      } else {
        instruction(op);
      }
    }
  }

  // Computes the arrays that a fusion results in, those of one shape in one loop; returns false for
  // any other op.
  bool fusion(const Instruction& op) {
    if (op.code() != OpCode::kFusion || op.result_count() < 2 ||
        !std::ranges::all_of(op.result_types(), is_array)) {
      return false;
    }
    const FusedOp fused(op);
    const auto loops = loops_of_results(fused);
    for (const std::vector<uint32_t>& loop : loops) {
      std::vector<Value> results;
      std::vector<MemoryId> memories;
      for (const uint32_t r : loop) {
        const Value& result = results.emplace_back(Value{const_cast<Instruction*>(&op), r});
        // A later loop may read what an operand holds.
        memories.push_back(loops.size() == 1 ? memory_for(op, result, memories)
                                             : scratch(result.type()));
      }
      b_.lanes(results[0].type().dims(), [&](const Values& index) {
        // All before the first store, which may overwrite an operand.
        Elements elements;
        for (const Value result : results) elements.push_back(e_.element(result, index));
        for (size_t i = 0; i < results.size(); ++i) e_.store(elements[i], memories[i], index);
      });
      for (size_t i = 0; i < results.size(); ++i) {
        hold(results[i], memories[i]);
        e_.bind(fused.results[loop[i]], memories[i]);  // For later loops.
      }
    }
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      // One without elements.
      const Value result{const_cast<Instruction*>(&op), r};
      if (e_.memory_of(result) == kernel::kNone) hold(result, scratch(result.type()));
    }
    return true;
  }

  void instruction(const Instruction& op) {
    // Constants in memory are inputs of the kernel.
    if (op.code() == OpCode::kConstant || update_in_place(op) || scatter(op) || fusion(op)) return;
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      const Value value{const_cast<Instruction*>(&op), r};
      if (is_array(value.type())) {
        const MemoryId memory =
            op.result_count() == 1 ? memory_for(op, value) : scratch(value.type());
        store(value, memory);
        hold(value, memory);
      } else {
        e_.bind(value, number(value));
      }
    }
  }

  // --- while

  struct LoopState {
    std::vector<MemoryId> arrays;    // kNone for numbers
    std::vector<ElementType> types;  // of the numbers
  };

  void bind_parameters(const Computation& region, const LoopState& state, const Values& numbers) {
    const Elements elements = ElementEmitter::unflat(numbers, state.types);
    size_t next = 0;
    for (size_t i = 0; i < state.arrays.size(); ++i) {
      if (state.arrays[i] != kernel::kNone) {
        hold(region.parameter(i), state.arrays[i]);
      } else {
        e_.bind(region.parameter(i), elements[next++]);
      }
    }
  }

  // The memory of array `i` of the state of `op`, with its initial value.
  MemoryId begin_state(const Instruction& op, uint32_t i) {
    if (const auto given = given_.find({&op, i}); given != given_.end()) return given->second;
    if (const MemoryId memory = changed_memory(op, i); memory != kernel::kNone) return memory;
    const MemoryId own = scratch(op.operand_type(i));
    store(op.operand(i), own);
    return own;
  }

  void loop(const Instruction& op) {
    LoopState state;
    Elements inits;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Type& type = op.operand_type(i);
      if (is_array(type)) {
        state.arrays.push_back(begin_state(op, static_cast<uint32_t>(i)));
      } else {
        state.arrays.push_back(kernel::kNone);
        inits.push_back(number(op.operand(i)));
        state.types.push_back(type.element_type());
      }
    }
    const auto position = [&](size_t counter) {
      const auto end = state.arrays.begin() + static_cast<std::ptrdiff_t>(counter);
      const auto before = std::count(state.arrays.begin(), end, kernel::kNone);
      return ElementEmitter::flat({inits.begin(), inits.begin() + before}).size();
    };
    const Values numbers = emit_loop(
        b_, op, ElementEmitter::flat(inits), position,
        [&](const Values& carried) {
          // A condition contains only computation: its values are emitted where they are used.
          bind_parameters(op.region(0), state, carried);
          return Values{e_.element(op.region(0).return_instruction()->operand(0), {}).re};
        },
        [&](const Values& carried) {
          bind_parameters(op.region(1), state, carried);
          states_[&op.region(1)] = state.arrays;
          instructions(op.region(1));
          return advance(*op.region(1).return_instruction(), state);
        });
    bind_results(op, state.arrays, ElementEmitter::unflat(numbers, state.types));
  }

  // Copies the next values into the state. A value that is in the state itself is first saved,
  // because another copy may overwrite it.
  Values advance(const Instruction& end, const LoopState& state) {
    Elements numbers;
    std::vector<std::pair<Value, MemoryId>> copies;
    for (size_t i = 0; i < state.arrays.size(); ++i) {
      const Value next = end.operand(i);
      if (state.arrays[i] == kernel::kNone) {
        numbers.push_back(number(next));
        continue;
      }
      if (e_.memory_of(next) == state.arrays[i]) continue;
      const bool in_state = std::find(state.arrays.begin(), state.arrays.end(),
                                      e_.memory_of(next)) != state.arrays.end();
      if (in_state && e_.memory_of(next) != kernel::kNone) {
        const MemoryId aside = scratch(next.type());
        store(next, aside);
        asides_.emplace_back(aside, state.arrays[i], next.type());
        continue;
      }
      copies.emplace_back(next, state.arrays[i]);
    }
    for (const auto& [value, memory] : copies) store(value, memory);
    for (const auto& [aside, memory, type] : asides_) move(aside, memory, type);
    asides_.clear();
    return ElementEmitter::flat(numbers);
  }

  void move(MemoryId from, MemoryId to, const Type& type) {
    if (element_count(type.dims()) == 0) return;
    b_.lanes(type.dims(), [&, from = from, to = to](const Values& index) {
      e_.store(e_.load(from, type, index), to, index);
    });
  }

  void bind_results(const Instruction& op, const std::vector<MemoryId>& arrays,
                    const Elements& numbers) {
    size_t next = 0;
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      const Value value{const_cast<Instruction*>(&op), r};
      if (arrays[r] != kernel::kNone) {
        hold(value, arrays[r]);
      } else {
        e_.bind(value, numbers[next++]);
      }
    }
  }

  // --- if and case

  void branches(const Instruction& op) {
    std::vector<MemoryId> arrays;
    std::vector<ElementType> types;
    for (const Type& type : op.result_types()) {
      arrays.push_back(is_array(type) ? scratch(type) : kernel::kNone);
      if (!is_array(type)) types.push_back(type.element_type());
    }
    const ValueId index = e_.element(op.operand(0), {}).re;
    const auto branch = [&](size_t r) {
      instructions(op.region(r));
      const Instruction& end = *op.region(r).return_instruction();
      Elements numbers;
      for (size_t i = 0; i < arrays.size(); ++i) {
        if (arrays[i] != kernel::kNone) {
          store(end.operand(i), arrays[i]);
        } else {
          numbers.push_back(number(end.operand(i)));
        }
      }
      return ElementEmitter::flat(numbers);
    };
    const bool is_if = op.code() == OpCode::kIf;
    const ValueId taken = is_if ? index : taken_branch(b_, op, index);
    const std::function<Values(BranchRange)> choose = [&](BranchRange range) -> Values {
      if (range.end - range.begin == 1) return branch(range.begin);
      const auto [left, right] = range.halves();
      const ValueId in_left =
          is_if ? index
                : b_.compare(K::kLt, taken,
                             b_.integer(kBranchType, static_cast<int64_t>(right.begin)));
      return b_.if_else(in_left, [&] { return choose(left); }, [&] { return choose(right); });
    };
    bind_results(op, arrays, ElementEmitter::unflat(choose({0, op.region_count()}), types));
  }

  ElementEmitter& e_;
  Builder& b_;
  std::map<MemoryId, Value> held_;  // The value in each memory that may change.
  std::map<std::pair<const Instruction*, uint32_t>, MemoryId> given_;
  // The memories of a loop's state, by the loop's body.
  std::map<const Computation*, std::vector<MemoryId>> states_;
  std::vector<std::tuple<MemoryId, MemoryId, Type>> asides_;
};

}  // namespace

Status lower_in_workgroup(LoweredOp& lowered, const Instruction& op, const WorkgroupForm& form,
                          TuningParameters& tuning) {
  const auto in_result = [&](uint32_t r) {
    return r < form.in_results.size() && form.in_results[r];
  };
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    if (in_result(r)) TENON_TRY(begin_as(lowered, op, r, op.operand(r), tuning));
  }
  return add_kernel(lowered, op, "_workgroup", [&](KernelMaker& maker) {
    maker.inputs();
    Workgroup workgroup(maker);
    std::vector<MemoryId> results;
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      using kernel::Access;
      results.push_back(maker.result(r, in_result(r) ? Access::kInOut : Access::kOut));
      if (in_result(r)) workgroup.give(op, r, results[r]);
    }
    maker.b().grid({});
    workgroup.control(op);
    for (uint32_t r = 0; r < op.result_count(); ++r) {
      if (!in_result(r)) workgroup.store({const_cast<Instruction*>(&op), r}, results[r]);
    }
  });
}

}  // namespace tenon::hlo::lower
