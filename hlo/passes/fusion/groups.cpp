#include "hlo/passes/fusion/groups.h"

#include <algorithm>

#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/lower_op.h"
#include "hlo/passes/constants.h"

namespace tenon::hlo::fusion {
namespace {

bool is_array_op(const Instruction& op) {
  return op.result_count() > 0 &&
         std::ranges::all_of(op.result_types(), [](const Type& type) { return type.is_tensor(); });
}

}  // namespace

Dims without_ones(const Dims& dims) {
  Dims rest;
  std::ranges::copy_if(dims, std::back_inserter(rest), [](int64_t d) { return d != 1; });
  return rest;
}

bool Group::contains(const Instruction* op) const {
  return std::ranges::find(ops, op) != ops.end();
}

bool Group::has(const Dims& dims) const {
  return dims == domain || (is_row_fusion && without_ones(dims) == without_ones(rows));
}

int64_t Group::input_count() const {
  const std::set<const Instruction*> within(ops.begin(), ops.end());
  std::set<std::pair<const Instruction*, uint32_t>> inputs;
  for (const Instruction* op : ops) {
    for (const Value value : all_operands(*op)) {
      const bool inlined =
          value.def->code() == OpCode::kConstant && lower::is_inline_constant(*value.def);
      if (!within.contains(value.def) && !inlined) inputs.insert({value.def, value.index});
    }
  }
  return std::ssize(inputs);
}

FusionGroups::FusionGroups(Computation& computation, const lower::CostModel& cost)
    : computation_(computation), cost_(cost) {
  int64_t place = 0;
  for (Instruction& op : computation_) places_[&op] = place++;
}

GroupPtr FusionGroups::of(const Instruction* op) const {
  const auto found = groups_.find(op);
  return found == groups_.end() ? nullptr : found->second;
}

void FusionGroups::set(const GroupPtr& group) {
  for (const Instruction* op : group->ops) groups_[op] = group;
}

void FusionGroups::add(const GroupPtr& group, Instruction* op) {
  group->ops.push_back(op);
  groups_[op] = group;
}

void FusionGroups::set_place(const Instruction* inserted, const Instruction& like) {
  places_[inserted] = places_[&like];
}

const Instruction* FusionGroups::user(const Use& use) const {
  const Instruction* at = use.user;
  while (at != nullptr && at->parent() != &computation_) at = at->parent()->owner();
  return at;
}

void FusionGroups::drop_unused(const GroupPtr& group) {
  std::vector<Instruction*> ops = group->ops;
  std::ranges::sort(ops, [](const auto* a, const auto* b) { return b->comes_before(*a); });
  for (Instruction* op : ops) {
    if (!op->uses().empty()) continue;
    std::erase(group->ops, op);
    groups_.erase(op);
    places_.erase(op);
    computation_.erase(op);
  }
}

int64_t Group::operations() const {
  constexpr int64_t kQuarters = 4;
  int64_t quarters = 0;
  for (const Instruction* op : ops) {
    if (op->info().fusion == FusionKind::kRepeats) continue;
    const Type& type = op->result_type();
    const bool is_short = op->info().fusion == FusionKind::kElementwise && type.is_tensor() &&
                          is_integer(type.element_type()) && op->code() != OpCode::kDivide &&
                          op->code() != OpCode::kRemainder && op->code() != OpCode::kPower;
    quarters += is_short ? 1 : kQuarters;
  }
  return (quarters + kQuarters - 1) / kQuarters;
}

bool FusionGroups::is_small(const Group& group) const {
  return group.operations() <= cost_.fused_ops && group.input_count() <= cost_.fused_inputs;
}

bool has_known_sizes(const Instruction& op) {
  const auto known = [](const Type& type) { return !type.is_tensor() || type.shape().is_static(); };
  const std::vector<Value> operands = op.operands();
  return std::ranges::all_of(op.result_types(), known) &&
         std::ranges::all_of(operands, [&](Value value) { return known(value.type()); });
}

bool is_elementwise(const Instruction& op) {
  return op.info().fusion == FusionKind::kElementwise && is_array_op(op) && lower::is_elemental(op);
}

bool only_moves(const Instruction& op) {
  constexpr size_t kMostParts = 4;
  const FusionKind kind = op.info().fusion;
  if (op.code() == OpCode::kConcatenate && op.operand_count() > kMostParts) return false;
  return (kind == FusionKind::kMoves || kind == FusionKind::kRepeats) && is_array_op(op) &&
         lower::is_elemental(op);
}

bool is_reduction(const Instruction& op) { return op.info().fusion == FusionKind::kReduces; }

bool is_gather(const Instruction& op) {
  return op.info().fusion == FusionKind::kGathers && is_array_op(op) && lower::is_elemental(op);
}

bool is_long_scatter(const Instruction& op, const lower::CostModel& cost) {
  return op.info().fusion == FusionKind::kScatters && op.result_count() == 1 && is_array_op(op) &&
         lower::has_elemental_regions(op) &&
         element_count(op.operand_type(1).dims()) > cost.workgroup_elements;
}

bool is_product(const Instruction& op, const lower::CostModel& cost) {
  return cost.wide_tiles && op.code() == OpCode::kConvolution && is_array_op(op) &&
         is_plain(op.result_type()) && !is_complex(op.result_type().element_type());
}

bool is_update_of(const Use& use, Value array) {
  const Updates updates = use.user->info().updates;
  const bool is_update = updates == Updates::kFirst || updates == Updates::kSameIndex;
  return is_update && use.operand == 0 && use.user->operand(0) == array;
}

bool is_updated(const Value array) {
  return std::ranges::any_of(array.def->uses(),
                             [&](const Use& use) { return is_update_of(use, array); });
}

bool is_indexed(const Use& use) {
  const FusionKind kind = use.user->info().fusion;
  const bool indexes = kind == FusionKind::kGathers || kind == FusionKind::kScatters;
  return indexes && use.operand == 0;
}

}  // namespace tenon::hlo::fusion
