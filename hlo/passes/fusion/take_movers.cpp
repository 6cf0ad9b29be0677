// Ops that only move elements join their readers, and so do transposes.
#include <algorithm>

#include "hlo/lower/elements/rules.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/fusion/groups.h"

namespace tenon::hlo::fusion {
namespace {

// Whether several fusions may compute it: each reads no more than it would read of the result. (A
// reshape in memory costs nothing.)
bool may_repeat(const Instruction& op) {
  if (op.info().fusion == FusionKind::kRepeats) return true;
  // One that leaves out dimensions of a slice hides it from the ops that read it.
  return op.code() == OpCode::kReshape && op.operand(0).def->code() == OpCode::kSlice &&
         op.operand(0).def->uses().size() == 1;
}

class Movers {
 public:
  explicit Movers(FusionGroups& groups) : groups_(groups), cost_(groups.cost()) {}

  void take_movers() {
    std::vector<Instruction*> ops;
    for (Instruction& op : groups_.computation()) ops.push_back(&op);
    for (auto at = ops.rbegin(); at != ops.rend(); ++at) {
      if (only_moves(**at) && groups_.of(*at) == nullptr) take_mover(**at);
    }
  }

  // A tile of the operand comes in by rows, and short rows are taken apart by lanes, so that the
  // transposed array need not be in memory.
  void take_transposes() {
    for (Instruction& op : groups_.computation()) {
      if (op.code() == OpCode::kTranspose && groups_.of(&op) == nullptr) take_transpose(op);
    }
  }

 private:
  // Whether every update in place of `array` waits for the group, which therefore reads the array
  // as it was before.
  static bool is_read_before_updates(Value array, const Group& group) {
    return std::ranges::all_of(array.def->uses(), [&](const Use& use) {
      if (!is_update_of(use, array)) return true;
      const std::vector<Value> operands = all_operands(*use.user);
      return std::ranges::any_of(operands,
                                 [&](Value x) { return x != array && group.contains(x.def); });
    });
  }

  // Whether it joins short rows that a pad makes, whose lanes know their places: those of long rows
  // would divide their indices.
  bool joins_padded_rows(const Instruction& op) const {
    if (op.code() != OpCode::kReshape || op.operand(0).def->code() != OpCode::kPad) return false;
    const Dims& from = op.operand_type(0).dims();
    const Dims& to = op.result_type().dims();
    return !from.empty() && !to.empty() && from.back() <= cost_.padded_row &&
           to.back() > from.back();
  }

  void take_mover(Instruction& op) {
    std::vector<std::pair<GroupPtr, std::vector<Use>>> readers;  // In the order of their uses.
    std::map<GroupPtr, size_t> number;
    for (const Use& use : op.uses()) {
      if (is_product(*use.user, cost_)) return;
      const GroupPtr group =
          use.user->parent() == &groups_.computation() ? groups_.of(use.user) : nullptr;
      if (group == nullptr) return;
      const auto [known, added] = number.try_emplace(group, readers.size());
      if (added) readers.push_back({group, {}});
      readers[known->second].second.push_back(use);
    }
    if (readers.empty()) return;
    // A gather that reads few elements of an array would read them far apart.
    if (std::ranges::any_of(op.uses(), is_indexed)) return;
    if (joins_padded_rows(op)) return;
    const bool slices = op.code() == OpCode::kSlice || op.code() == OpCode::kDynamicSlice;
    if (slices && readers.size() > 1 && is_updated(op.operand(0))) return;
    if (slices && !is_read_before_updates(op.operand(0), *readers[0].first)) return;
    // A row fusion reads whole rows.
    const bool moves_rows = op.code() == OpCode::kBroadcastInDim || op.code() == OpCode::kIota ||
                            lower::keeps_order(op);
    for (const auto& [group, uses] : readers) {
      if (group->is_row_fusion && !moves_rows) return;
      if (readers.size() > 1 && !may_repeat(op)) return;
    }
    for (const auto& [group, uses] : readers) {
      Group with = *group;
      with.ops.push_back(&op);
      if (with.input_count() > cost_.fused_inputs) return;
      // The group may compute an operand of it.
      for (const Value operand : op.operands()) {
        if (groups_.of(operand.def) == group) return;
      }
    }
    // The last reader gets the op, the others a copy.
    for (size_t i = 0; i + 1 < readers.size(); ++i) {
      const auto& [group, uses] = readers[i];
      Cloner cloner;
      Instruction* const copy = groups_.computation().insert(cloner.clone(op), op.next());
      groups_.set_place(copy, op);
      for (const Use& use : uses) use.user->set_operand(use.operand, copy->result());
      groups_.add(group, copy);
    }
    groups_.add(readers.back().first, &op);
  }

  void take_transpose(Instruction& op) {
    constexpr size_t kMostOps = 8;  // More, and a CPU does not transpose them in registers.
    if (op.uses().empty() || !has_known_sizes(op) || op.result_type().rank() < 2) return;
    if (is_updated(op.operand(0))) return;
    const GroupPtr group = groups_.of(op.uses()[0].user);
    if (group == nullptr || group->ops.size() >= kMostOps) return;
    const bool all_read = std::ranges::all_of(op.uses(), [&](const Use& use) {
      return use.user->parent() == &groups_.computation() && groups_.of(use.user) == group;
    });
    if (!all_read || group->is_row_fusion || group->is_closed || group->is_scatter ||
        group->product != nullptr || groups_.of(op.operand(0).def) == group) {
      return;
    }
    const Dims& dims = op.result_type().dims();
    const bool fits = std::ranges::all_of(group->ops, [&](const Instruction* each) {
      const bool is_like = each->code() == OpCode::kTranspose && across_of(*each) == across_of(op);
      return (is_elementwise(*each) || is_like || only_moves(*each)) &&
             each->result_type().dims() == dims;
    });
    Group with = *group;
    with.ops.push_back(&op);
    if (!fits || with.input_count() > cost_.fused_inputs) return;
    if (is_tiled(op) && cost_.busy_lanes <= 1 && !suits_tiles(with)) return;
    groups_.add(group, &op);
  }

  bool is_tiled(const Instruction& transpose) const {
    const Dims& dims = transpose.result_type().dims();
    const int64_t across = dims[static_cast<size_t>(across_of(transpose))];
    return std::min(dims.back(), across) >= cost_.tiled_short_rows;
  }

  // Whether a core does as well by tiles as by rows: transposes read the only arrays of the group's
  // size, of which one is the result, since it fetches other arrays ahead by rows alone; and there
  // is no math function, of which several vectors overlap.
  bool suits_tiles(const Group& group) const {
    const std::set<const Instruction*> within(group.ops.begin(), group.ops.end());
    const auto is_long = [&](Value value) {
      return value.type().is_tensor() &&
             element_count(value.type().dims()) == element_count(group.domain);
    };
    const auto results = std::ranges::count_if(group.ops, [&](const Instruction* op) {
      return std::ranges::any_of(
          op->uses(), [&](const Use& use) { return !within.contains(groups_.user(use)); });
    });
    return results <= 1 && std::ranges::all_of(group.ops, [&](const Instruction* op) {
             const std::vector<Value> operands = op->operands();
             if (lower::is_math_function(*op)) return false;
             return op->code() == OpCode::kTranspose ||
                    std::ranges::none_of(operands, [&](const Value x) {
                      return !within.contains(x.def) && is_long(x) &&
                             x.def->code() != OpCode::kConstant;
                    });
           });
  }

  // The dimension of a transpose's result along which the operand lies in memory.
  static int64_t across_of(const Instruction& transpose) {
    const I64s& permutation = transpose.i64s(AttrKey::permutation);
    return std::ranges::find(permutation, std::ssize(permutation) - 1) - permutation.begin();
  }

  FusionGroups& groups_;
  const lower::CostModel& cost_;
};

}  // namespace

void take_movers(FusionGroups& groups) {
  Movers movers(groups);
  movers.take_movers();
  movers.take_transposes();
}

}  // namespace tenon::hlo::fusion
