// Elementwise ops, reductions, gathers, scatters and products become groups, which join those of
// their operands.
#include <algorithm>
#include <optional>

#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/passes/fusion/groups.h"

namespace tenon::hlo::fusion {
namespace {

constexpr size_t kMostBetween = 2000;  // ops visited between those of a group

// The rows of a reduction over the minor dimensions of its operand.
std::optional<Dims> rows_of(const Instruction& op, const lower::CostModel& cost) {
  if (!is_reduction(op)) return std::nullopt;
  const Dims& whole = op.operand_type(0).dims();
  const Dims& rows = op.result_type().dims();
  const I64s& reduced = op.i64s(AttrKey::dimensions);
  const bool minor = std::ranges::all_of(
      reduced, [&](int64_t d) { return d >= static_cast<int64_t>(rows.size()); });
  // Few long rows are reduced in two stages by many workgroups, which is more important than
  // fusion.
  const int64_t count = element_count(rows);
  if (count <= cost.few_results &&
      element_count(whole) >= cost.long_reduction * std::max<int64_t>(count, 1)) {
    return std::nullopt;
  }
  if (!minor || reduced.empty() || element_count(whole) == 0) return std::nullopt;
  return rows;
}

class Joining {
 public:
  explicit Joining(FusionGroups& groups) : groups_(groups), cost_(groups.cost()) {}

  void join(Instruction& op) {
    const bool reduces = is_reduction(op) && lower::is_elemental(op);
    if (!has_known_sizes(op)) return;
    const bool scatters = is_long_scatter(op, cost_);
    const bool indexes = scatters || is_gather(op);
    const bool multiplies = is_product(op, cost_);
    if (!is_elementwise(op) && !reduces && !indexes && !multiplies && !links_rows(op)) return;
    auto mine = std::make_shared<Group>();
    mine->ops = {&op};
    mine->domain = reduces ? op.operand_type(0).dims() : op.result_type().dims();
    if (reduces) {
      const std::optional<Dims> rows = rows_of(op, cost_);
      mine->is_row_fusion = rows.has_value();
      mine->is_closed = !rows.has_value();
      if (rows) mine->rows = *rows;
    }
    mine->is_scatter = scatters;
    // With a reader of the updated array it would be read behind the update, which then copies it.
    mine->is_closed |= scatters || (indexes && is_updated(op.operand(0)));
    if (multiplies) mine->product = &op;
    groups_.set(mine);
    if (indexes || multiplies) return;  // It reads its operands at other indices.
    for (const Value operand : op.operands()) {
      const GroupPtr theirs = groups_.of(operand.def);
      if (theirs != nullptr && theirs != groups_.of(&op)) merge(theirs, groups_.of(&op));
    }
  }

 private:
  // Whether `op` broadcasts or reshapes a value with one number per row of a row fusion, so that
  // rows correspond.
  bool links_rows(const Instruction& op) const {
    if (op.code() != OpCode::kBroadcastInDim && op.code() != OpCode::kReshape) return false;
    const GroupPtr group = groups_.of(op.operand(0).def);
    if (group == nullptr || !group->is_row_fusion) return false;
    const Dims& from = op.operand_type(0).dims();
    if (without_ones(from) != without_ones(group->rows)) return false;
    if (op.code() == OpCode::kReshape) return true;
    const I64s& to = op.i64s(AttrKey::broadcast_dimensions);
    const Dims& dims = op.result_type().dims();
    // Dimensions of more than one element must stay in order, as the first ones of the domain or of
    // the rows, with ones among them.
    size_t next = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 1) continue;
      const auto place = static_cast<size_t>(to[i]);
      if (without_ones(Dims(dims.begin(), dims.begin() + to[i])).size() != next++) return false;
      if (dims[place] != from[i]) return false;
    }
    return true;
  }

  void merge(const GroupPtr& first, const GroupPtr& second) {
    if (first->is_closed || first->operations() + second->operations() > cost_.fused_ops) return;
    if (first->is_row_fusion && second->is_row_fusion && first->rows != second->rows) return;
    Group both = *first;
    both.ops.insert(both.ops.end(), second->ops.begin(), second->ops.end());
    both.is_closed = second->is_closed;
    if (second->is_row_fusion) {
      both.is_row_fusion = true;
      both.rows = second->rows;
    }
    if (element_count(second->domain) > element_count(first->domain)) both.domain = second->domain;
    for (const Instruction* op : both.ops) {
      const bool reduces = is_reduction(*op);
      const Dims& dims = reduces ? op->operand_type(0).dims() : op->result_type().dims();
      if (reduces ? dims != both.domain : !both.has(dims)) return;
    }
    if (first->product != nullptr && second->product != nullptr) return;
    if (first->product != nullptr) both.product = first->product;
    if (second->product != nullptr) both.product = second->product;
    if (both.product != nullptr && !follows_product(both)) return;
    if (both.is_closed && !ends_in_reduction(both)) return;
    if (gathers_from_itself(both)) return;
    if (both.input_count() > cost_.fused_inputs || stands_between(both)) return;
    groups_.set(std::make_shared<Group>(std::move(both)));
  }

  // Whether the group computes no element that its product reads, which would be computed again for
  // each window, and none from several results.
  static bool follows_product(const Group& group) {
    return !group.is_row_fusion && !group.is_closed &&
           std::ranges::none_of(group.product->operands(),
                                [&](const Value operand) { return group.contains(operand.def); });
  }

  // Whether a gather would compute the elements that it reads again.
  static bool gathers_from_itself(const Group& group) {
    return std::ranges::any_of(group.ops, [&](const Instruction* op) {
      return is_gather(*op) && group.contains(op->operand(0).def);
    });
  }

  // Whether only the results of the group's one reduction are used outside: a reduction other than
  // over rows is computed by a separate loop.
  bool ends_in_reduction(const Group& group) const {
    const std::set<const Instruction*> within(group.ops.begin(), group.ops.end());
    const auto reductions =
        std::ranges::count_if(group.ops, [](const Instruction* op) { return is_reduction(*op); });
    return reductions == 1 && std::ranges::all_of(group.ops, [&](const Instruction* op) {
             return is_reduction(*op) || std::ranges::all_of(op->uses(), [&](const Use& use) {
                      return within.contains(groups_.user(use));
                    });
           });
  }

  // Whether an instruction outside uses one of the group and is used by another, or whether they
  // are too far apart to tell.
  bool stands_between(const Group& group) const {
    const std::set<const Instruction*> within(group.ops.begin(), group.ops.end());
    int64_t last = 0;
    for (const Instruction* op : group.ops) last = std::max(last, groups_.place(op));
    std::set<const Instruction*> seen;
    std::vector<const Instruction*> rest(group.ops.begin(), group.ops.end());
    while (!rest.empty()) {
      if (seen.size() > kMostBetween) return true;
      const Instruction* const op = rest.back();
      rest.pop_back();
      for (const Use& use : op->uses()) {
        const Instruction* const next = groups_.user(use);
        if (within.contains(op) && within.contains(next)) continue;
        if (within.contains(next)) return true;
        if (groups_.place(next) < last && seen.insert(next).second) rest.push_back(next);
        // An op of another group will be computed together with that whole group.
        const GroupPtr other = groups_.of(next);
        if (other == nullptr) continue;
        for (const Instruction* mate : other->ops) {
          if (!within.contains(mate) && seen.insert(mate).second) rest.push_back(mate);
        }
      }
    }
    return false;
  }

  FusionGroups& groups_;
  const lower::CostModel& cost_;
};

}  // namespace

void join_operands(FusionGroups& groups) {
  Joining joining(groups);
  for (Instruction& op : groups.computation()) joining.join(op);
}

}  // namespace tenon::hlo::fusion
