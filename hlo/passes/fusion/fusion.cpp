// Chooses fusions: elementwise ops with each other, with the reductions that read them, and along
// rows (softmax, layer norm), and with the convolution before them; ops that only move elements
// with those that read them; gathers with what follows them, and gathers and scatters with the ops
// that compute their indices.
//
//   %m = reduce(%x), max over rows         %m, … = fusion(%x) {
//   %b = broadcast_in_dim(%m)                 all of them
//   %d = subtract(%x, %b)           ->     }
//   %e = exponential(%d)
//
// A group is a set of instructions of one computation that become one fusion. It has a domain, the
// dimensions of its elements. With a reduction over the minor dimensions it is a row fusion, whose
// other values have one number per row. An op does not join a group if another kernel would have to
// run between them, or if elements would be computed more than once.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/elements/rules.h"
#include "hlo/lower/lower_op.h"
#include "hlo/lower/schedules/own_kernels.h"
#include "hlo/passes/constants.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

constexpr size_t kMostBetween = 2000;  // ops visited between those of a group

struct Group {
  std::vector<Instruction*> ops;  // In no order.
  Dims domain;
  Dims rows;  ///< The dimensions of the rows of a row fusion.
  bool is_row_fusion = false;
  /// Ends in a reduction other than over rows: no op can follow it in the group.
  bool is_closed = false;
  bool is_scatter = false;
  bool is_concatenation = false;
  /// The convolution whose results the others compute with, as they leave its tiles.
  Instruction* product = nullptr;
};
using GroupPtr = std::shared_ptr<Group>;

bool is_array_op(const Instruction& op) {
  return op.result_count() > 0 &&
         std::ranges::all_of(op.result_types(), [](const Type& type) { return type.is_tensor(); });
}

// Fusions contain only arrays of known sizes, as lowering does.
bool has_known_sizes(const Instruction& op) {
  const auto known = [](const Type& type) { return !type.is_tensor() || type.shape().is_static(); };
  const std::vector<Value> operands = op.operands();
  return std::ranges::all_of(op.result_types(), known) &&
         std::ranges::all_of(operands, [&](Value value) { return known(value.type()); });
}

bool is_elementwise(const Instruction& op) {
  return op.info().fusion == FusionKind::kElementwise && is_array_op(op) && lower::is_elemental(op);
}

// Each element of the result is an element of an operand, which is almost free to compute again.
// (In a concatenation of many arrays it takes long to find.)
bool only_moves(const Instruction& op) {
  constexpr size_t kMostParts = 4;
  const FusionKind kind = op.info().fusion;
  if (op.code() == OpCode::kConcatenate && op.operand_count() > kMostParts) return false;
  return (kind == FusionKind::kMoves || kind == FusionKind::kRepeats) && is_array_op(op) &&
         lower::is_elemental(op);
}

// Whether several fusions may compute it: each reads no more than it would read of the result. (A
// reshape in memory costs nothing.)
bool may_repeat(const Instruction& op) {
  if (op.info().fusion == FusionKind::kRepeats) return true;
  // One that leaves out dimensions of a slice hides it from the ops that read it.
  return op.code() == OpCode::kReshape && op.operand(0).def->code() == OpCode::kSlice &&
         op.operand(0).def->uses().size() == 1;
}

// A convolution by tiles, which stores what follows it without writing and reading its results.
bool is_product(const Instruction& op, const lower::CostModel& cost) {
  return cost.wide_tiles && op.code() == OpCode::kConvolution && is_array_op(op) &&
         is_plain(op.result_type()) && !is_complex(op.result_type().element_type());
}

bool is_reduction(const Instruction& op) { return op.info().fusion == FusionKind::kReduces; }

// Whether a use of `array` is an update, which can be in place.
bool is_update_of(const Use& use, Value array) {
  const Updates updates = use.user->info().updates;
  const bool is_update = updates == Updates::kFirst || updates == Updates::kSameIndex;
  return is_update && use.operand == 0 && use.user->operand(0) == array;
}
// Whether it is also updated: what reads it must do so first, so that the update can be in place.
bool is_updated(const Value array) {
  return std::ranges::any_of(array.def->uses(),
                             [&](const Use& use) { return is_update_of(use, array); });
}

bool is_gather(const Instruction& op) {
  return op.info().fusion == FusionKind::kGathers && is_array_op(op) && lower::is_elemental(op);
}

// A scatter whose indices and updates a kernel computes as it reads them. One of few updates
// belongs to loops that change an array in parts (update_chain in hlo/lower/uses.h).
bool is_long_scatter(const Instruction& op, const lower::CostModel& cost) {
  return op.info().fusion == FusionKind::kScatters && op.result_count() == 1 && is_array_op(op) &&
         lower::has_elemental_regions(op) &&
         element_count(op.operand_type(1).dims()) > cost.workgroup_elements;
}

// Whether it is an array that the elements of `op` are read from or written to at indices.
bool is_indexed(const Use& use) {
  const FusionKind kind = use.user->info().fusion;
  const bool indexes = kind == FusionKind::kGathers || kind == FusionKind::kScatters;
  return indexes && use.operand == 0;
}

Dims without_ones(const Dims& dims) {
  Dims rest;
  std::ranges::copy_if(dims, std::back_inserter(rest), [](int64_t d) { return d != 1; });
  return rest;
}

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

class Fusing {
 public:
  Fusing(Computation& computation, const lower::CostModel& cost)
      : computation_(computation), cost_(cost) {}

  Result<bool> run() {
    int64_t place = 0;
    for (Instruction& op : computation_) places_[&op] = place++;
    for (Instruction& op : computation_) join(op);
    take_movers();
    take_transposes();
    take_producers();
    take_parts();
    return fuse_groups();
  }

 private:
  GroupPtr group_of(const Instruction* op) const {
    const auto found = groups_.find(op);
    return found == groups_.end() ? nullptr : found->second;
  }

  // --- Ops join the groups of their operands

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
    groups_[&op] = mine;
    if (indexes || multiplies) return;  // It reads its operands at other indices.
    for (const Value operand : op.operands()) {
      const GroupPtr theirs = group_of(operand.def);
      if (theirs != nullptr && theirs != group_of(&op)) merge(theirs, group_of(&op));
    }
  }

  // Whether `op` broadcasts or reshapes a value with one number per row of a row fusion, so that
  // rows correspond.
  bool links_rows(const Instruction& op) const {
    if (op.code() != OpCode::kBroadcastInDim && op.code() != OpCode::kReshape) return false;
    const GroupPtr group = group_of(op.operand(0).def);
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

  // Whether an array of these dimensions fits the group: it has the group's domain, or one number
  // per row.
  static bool is_of(const Group& group, const Dims& dims) {
    return dims == group.domain ||
           (group.is_row_fusion && without_ones(dims) == without_ones(group.rows));
  }

  void merge(const GroupPtr& first, const GroupPtr& second) {
    const auto ops = static_cast<int64_t>(first->ops.size() + second->ops.size());
    if (first->is_closed || ops > cost_.fused_ops) return;
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
      if (reduces ? dims != both.domain : !is_of(both, dims)) return;
    }
    if (first->product != nullptr && second->product != nullptr) return;
    if (first->product != nullptr) both.product = first->product;
    if (second->product != nullptr) both.product = second->product;
    if (both.product != nullptr && !follows_product(both)) return;
    if (both.is_closed && !ends_in_reduction(both)) return;
    if (gathers_from_itself(both)) return;
    if (static_cast<int64_t>(inputs_of(both)) > cost_.fused_inputs || stands_between(both)) return;
    auto merged = std::make_shared<Group>(std::move(both));
    for (const Instruction* op : merged->ops) groups_[op] = merged;
  }

  // Whether the group computes no element that its product reads, which would be computed again for
  // each window, and none from several results.
  static bool follows_product(const Group& group) {
    return !group.is_row_fusion && !group.is_closed &&
           std::ranges::none_of(group.product->operands(), [&](const Value operand) {
             return std::ranges::find(group.ops, operand.def) != group.ops.end();
           });
  }

  // Whether a gather would compute the elements that it reads again.
  static bool gathers_from_itself(const Group& group) {
    return std::ranges::any_of(group.ops, [&](const Instruction* op) {
      return is_gather(*op) && std::ranges::find(group.ops, op->operand(0).def) != group.ops.end();
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
                      return within.contains(user(use));
                    });
           });
  }

  static size_t inputs_of(const Group& group) {
    const std::set<const Instruction*> within(group.ops.begin(), group.ops.end());
    std::set<std::pair<const Instruction*, uint32_t>> inputs;
    for (const Instruction* op : group.ops) {
      for (const Value value : all_operands(*op)) {
        const bool inlined =
            value.def->code() == OpCode::kConstant && lower::is_inline_constant(*value.def);
        if (!within.contains(value.def) && !inlined) inputs.insert({value.def, value.index});
      }
    }
    return inputs.size();
  }

  // The instruction of this computation that contains a use.
  const Instruction* user(const Use& use) const {
    const Instruction* at = use.user;
    while (at != nullptr && at->parent() != &computation_) at = at->parent()->owner();
    return at;
  }

  // Whether an instruction outside uses one of the group and is used by another, or whether they
  // are too far apart to tell.
  bool stands_between(const Group& group) const {
    const std::set<const Instruction*> within(group.ops.begin(), group.ops.end());
    int64_t last = 0;
    for (const Instruction* op : group.ops) last = std::max(last, places_.at(op));
    std::set<const Instruction*> seen;
    std::vector<const Instruction*> rest(group.ops.begin(), group.ops.end());
    while (!rest.empty()) {
      if (seen.size() > kMostBetween) return true;
      const Instruction* const op = rest.back();
      rest.pop_back();
      for (const Use& use : op->uses()) {
        const Instruction* const next = user(use);
        if (within.contains(op) && within.contains(next)) continue;
        if (within.contains(next)) return true;
        if (places_.at(next) < last && seen.insert(next).second) rest.push_back(next);
        // An op of another group will be computed together with that whole group.
        const GroupPtr other = group_of(next);
        if (other == nullptr) continue;
        for (const Instruction* mate : other->ops) {
          if (!within.contains(mate) && seen.insert(mate).second) rest.push_back(mate);
        }
      }
    }
    return false;
  }

  // --- Ops that only move elements join their readers

  void take_movers() {
    std::vector<Instruction*> ops;
    for (Instruction& op : computation_) ops.push_back(&op);
    for (auto at = ops.rbegin(); at != ops.rend(); ++at) {
      if (only_moves(**at) && group_of(*at) == nullptr) take_mover(**at);
    }
  }

  // Whether every update in place of `array` waits for the group, which therefore reads the array
  // as it was before.
  static bool is_read_before_updates(Value array, const Group& group) {
    return std::ranges::all_of(array.def->uses(), [&](const Use& use) {
      if (!is_update_of(use, array)) return true;
      const std::vector<Value> operands = all_operands(*use.user);
      return std::ranges::any_of(operands, [&](Value x) {
        return x != array && std::ranges::find(group.ops, x.def) != group.ops.end();
      });
    });
  }

  // Whether it joins short rows that a pad makes, whose lanes know their places: those of long rows
  // would divide their indices.
  static bool joins_padded_rows(const Instruction& op) {
    constexpr int64_t kShortRow = 16;
    if (op.code() != OpCode::kReshape || op.operand(0).def->code() != OpCode::kPad) return false;
    const Dims& from = op.operand_type(0).dims();
    const Dims& to = op.result_type().dims();
    return !from.empty() && !to.empty() && from.back() <= kShortRow && to.back() > from.back();
  }

  void take_mover(Instruction& op) {
    std::vector<std::pair<GroupPtr, std::vector<Use>>> readers;  // In the order of their uses.
    std::map<GroupPtr, size_t> number;
    for (const Use& use : op.uses()) {
      if (is_product(*use.user, cost_)) return;
      const GroupPtr group = use.user->parent() == &computation_ ? group_of(use.user) : nullptr;
      if (group == nullptr || static_cast<int64_t>(group->ops.size()) >= cost_.fused_ops) return;
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
      if (static_cast<int64_t>(inputs_of(with)) > cost_.fused_inputs) return;
      // The group may compute an operand of it.
      for (const Value operand : op.operands()) {
        if (group_of(operand.def) == group) return;
      }
    }
    // The last reader gets the op, the others a copy.
    for (size_t i = 0; i + 1 < readers.size(); ++i) {
      const auto& [group, uses] = readers[i];
      Cloner cloner;
      Instruction* const copy = computation_.insert(cloner.clone(op), op.next());
      places_[copy] = places_[&op];
      for (const Use& use : uses) use.user->set_operand(use.operand, copy->result());
      add(group, copy);
    }
    add(readers.back().first, &op);
  }

  // All readers of `op` are in the group, so no other instruction can be between them.
  void add(const GroupPtr& group, Instruction* op) {
    group->ops.push_back(op);
    groups_[op] = group;
  }

  // --- Transposes join their readers

  // A tile of the operand comes in by rows, and short rows are taken apart by lanes, so that the
  // transposed array need not be in memory.
  void take_transposes() {
    for (Instruction& op : computation_) {
      if (op.code() == OpCode::kTranspose && group_of(&op) == nullptr) take_transpose(op);
    }
  }

  void take_transpose(Instruction& op) {
    constexpr size_t kMostOps = 8;  // More, and a CPU does not transpose them in registers.
    if (op.uses().empty() || !has_known_sizes(op) || op.result_type().rank() < 2) return;
    if (is_updated(op.operand(0))) return;
    const GroupPtr group = group_of(op.uses()[0].user);
    if (group == nullptr || group->ops.size() >= kMostOps) return;
    const bool all_read = std::ranges::all_of(op.uses(), [&](const Use& use) {
      return use.user->parent() == &computation_ && group_of(use.user) == group;
    });
    if (!all_read || group->is_row_fusion || group->is_closed || group->is_scatter ||
        group->product != nullptr || group_of(op.operand(0).def) == group) {
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
    if (!fits || static_cast<int64_t>(inputs_of(with)) > cost_.fused_inputs) return;
    if (is_tiled(op) && cost_.busy_lanes <= 1 && !suits_tiles(with)) return;
    add(group, &op);
  }

  bool is_tiled(const Instruction& transpose) const {
    const Dims& dims = transpose.result_type().dims();
    const int64_t across = dims[static_cast<size_t>(across_of(transpose))];
    return std::min(dims.back(), across) >= cost_.tiled_short_rows;
  }

  static bool is_math(const Instruction& op) {
    const lower::ElementRule* const rule = op.info().element;
    return rule != nullptr && rule->operation && kernel::is_math(*rule->operation);
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
      return std::ranges::any_of(op->uses(),
                                 [&](const Use& use) { return !within.contains(user(use)); });
    });
    return results <= 1 && std::ranges::all_of(group.ops, [&](const Instruction* op) {
             const std::vector<Value> operands = op->operands();
             if (is_math(*op)) return false;
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

  // --- Gathers and scatters take the ops that compute what they read

  void take_producers() {
    std::vector<Instruction*> ops;
    for (Instruction& op : computation_) ops.push_back(&op);
    for (auto at = ops.rbegin(); at != ops.rend(); ++at) take_producer(**at);
  }

  // Adds `op`, or its group, to the group whose gathers or scatters are the only readers of it.
  void take_producer(Instruction& op) {
    const bool joins = op.code() == OpCode::kConcatenate || only_moves(op) || is_elementwise(op);
    if (!joins || !has_known_sizes(op) || op.uses().empty()) return;
    const GroupPtr mine = group_of(&op);
    if (mine != nullptr && (mine->is_row_fusion || mine->is_closed || mine->product != nullptr ||
                            taking_.contains(mine))) {
      return;
    }
    const std::vector<Instruction*> taken = mine ? mine->ops : std::vector<Instruction*>{&op};
    GroupPtr reader;
    bool is_repeated = false;
    for (const Instruction* each : taken) {
      for (const Use& use : each->uses()) {
        if (use.user->parent() != &computation_) return;
        const GroupPtr theirs = group_of(use.user);
        if (theirs == mine && mine != nullptr) continue;
        if (theirs == nullptr || (reader != nullptr && theirs != reader)) return;
        if (!reads_in_order(use, *theirs)) return;
        is_repeated |= reads_again(*each, use);
        reader = theirs;
      }
    }
    if (reader == nullptr) return;
    if (is_repeated && !is_brief(taken, *reader)) return;
    Group with = *reader;
    with.ops.insert(with.ops.end(), taken.begin(), taken.end());
    if (static_cast<int64_t>(with.ops.size()) > cost_.fused_ops) return;
    if (static_cast<int64_t>(inputs_of(with)) > cost_.fused_inputs) return;
    taking_.insert(reader);
    for (Instruction* each : taken) {
      add(reader, each);
      taken_.insert(each);
      if (is_repeated) repeated_.insert(each);
    }
  }

  // Whether the ops, and those of the group that are computed for each element of a window too, are
  // a few comparisons and sums of integers: what brings an index into bounds.
  bool is_brief(const std::vector<Instruction*>& taken, const Group& reader) const {
    constexpr size_t kMostRepeated = 8;
    const auto before = static_cast<size_t>(std::ranges::count_if(
        reader.ops, [&](const Instruction* op) { return repeated_.contains(op); }));
    const auto is_whole = [](const Type& type) {
      return type.is_tensor() && (is_integer(type.element_type()) || is_pred(type.element_type()));
    };
    return before + taken.size() <= kMostRepeated &&
           std::ranges::all_of(taken, [&](const Instruction* op) {
             const bool divides = op->code() == OpCode::kDivide || op->code() == OpCode::kRemainder;
             const std::vector<Value>& operands = op->operands();
             return !divides && !is_gather(*op) && is_whole(op->result_type()) &&
                    std::ranges::all_of(operands,
                                        [&](const Value& x) { return is_whole(x.type()); });
           });
  }

  // Whether elements of `op` are computed more than once for a use, perhaps behind ops that move
  // them.
  bool reads_again(const Instruction& op, const Use& use) const {
    if (repeated_.contains(use.user)) return true;
    const bool moves = only_moves(*use.user);
    if (!moves && !is_gather(*use.user)) return false;
    const auto count = [](const Instruction& x) { return element_count(x.result_type().dims()); };
    return count(*use.user) > count(op) ||
           (moves && std::ranges::any_of(use.user->uses(), [&](const Use& next) {
              return reads_again(*use.user, next);
            }));
  }

  // Whether a use by a group with a gather or a scatter is in the order of what it computes: as an
  // index, which is a number for each window, as an update, or by an op that was taken before.
  bool reads_in_order(const Use& use, const Group& group) const {
    if (group.is_row_fusion || is_indexed(use)) return false;
    const bool indexes = group.is_scatter || std::ranges::any_of(group.ops, [](const auto* each) {
                           return is_gather(*each);
                         });
    if (!indexes) return false;
    return taken_.contains(use.user) || lower::keeps_order(*use.user) || is_gather(*use.user) ||
           use.user->info().fusion == FusionKind::kScatters;
  }

  // --- Concatenations take the ops that compute their parts

  void take_parts() {
    for (Instruction& op : computation_) {
      if (op.code() == OpCode::kConcatenate && group_of(&op) == nullptr) take_parts_of(op);
    }
  }

  void take_parts_of(Instruction& concatenate) {
    constexpr size_t kMostParts = 16;
    if (concatenate.operand_count() > kMostParts || !has_known_sizes(concatenate)) return;
    auto group = std::make_shared<Group>();
    group->ops = {&concatenate};
    Instruction* const next = concatenate.uses().size() == 1 ? concatenate.uses()[0].user : nullptr;
    const bool is_transposed = next != nullptr && next->parent() == &computation_ &&
                               next->code() == OpCode::kTranspose && group_of(next) == nullptr &&
                               has_short_rows(concatenate, *next);
    if (is_transposed) group->ops.push_back(next);
    group->domain = group->ops.back()->result_type().dims();
    group->is_closed = true;
    group->is_concatenation = true;
    const size_t before = group->ops.size();
    for (const Value part : concatenate.operands()) take_part(*part.def, *group);
    const auto computes = [](const Instruction* op) { return !lower::keeps_order(*op); };
    if (!std::any_of(group->ops.begin() + static_cast<std::ptrdiff_t>(before), group->ops.end(),
                     computes)) {
      return;
    }
    if (static_cast<int64_t>(group->ops.size()) > cost_.fused_ops ||
        static_cast<int64_t>(inputs_of(*group)) > cost_.fused_inputs || reads_updated(*group)) {
      return;
    }
    for (const Instruction* op : group->ops) groups_[op] = group;
  }

  // Whether a transpose puts the concatenated dimension last, where it has few elements.
  static bool has_short_rows(const Instruction& concatenate, const Instruction& transpose) {
    constexpr int64_t kShort = 16;
    const int64_t axis = concatenate.integer(AttrKey::dimension);
    return transpose.i64s(AttrKey::permutation).back() == axis &&
           concatenate.result_type().dims()[static_cast<size_t>(axis)] <= kShort;
  }

  // Whether the ops that read the value are slices that have no more elements together than it has:
  // computed in place of each, it is not computed more often.
  static bool reads_once(Value value) {
    int64_t read = 0;
    for (const Use& use : value.def->uses()) {
      if (use.user->code() != OpCode::kSlice) return false;
      read += element_count(use.user->result_type().dims());
    }
    return read <= element_count(value.type().dims());
  }

  // Adds `op`, or its group, if only ops of the group read it; and what it moves. What is read
  // `is_repeated`, by slices that overlap, is moved as often, and not computed.
  void take_part(Instruction& op, Group& group, bool is_repeated = false) const {
    const auto within = [&](const Instruction* one) {
      return std::ranges::find(group.ops, one) != group.ops.end();
    };
    if (within(&op) || op.parent() != &computation_ || !has_known_sizes(op)) return;
    const GroupPtr mine = group_of(&op);
    if (mine == nullptr) {
      const bool alone =
          std::ranges::all_of(op.uses(), [&](const Use& use) { return within(use.user); });
      if (!alone || !only_moves(op) || op.code() == OpCode::kConcatenate) return;
      group.ops.push_back(&op);
      const bool is_slice = op.code() == OpCode::kSlice;
      if (is_slice || lower::keeps_order(op)) {
        const bool again = is_slice && !reads_once(op.operand(0));
        take_part(*op.operand(0).def, group, is_repeated || again);
      }
      return;
    }
    if (is_repeated || mine->is_row_fusion || mine->is_closed || mine->product != nullptr ||
        taking_.contains(mine)) {
      return;
    }
    const std::set<const Instruction*> together(mine->ops.begin(), mine->ops.end());
    for (const Instruction* each : mine->ops) {
      for (const Use& use : each->uses()) {
        if (!within(use.user) && !together.contains(use.user)) return;
      }
    }
    group.ops.insert(group.ops.end(), mine->ops.begin(), mine->ops.end());
  }

  // Whether an array that the group reads is updated, which would have to wait for all of it.
  static bool reads_updated(const Group& group) {
    return std::ranges::any_of(group.ops, [](const Instruction* op) {
      return std::ranges::any_of(op->operands(), is_updated);
    });
  }

  // --- Groups become fusions

  Result<bool> fuse_groups() {
    std::vector<GroupPtr> groups;
    std::set<GroupPtr> known;
    for (Instruction& op : computation_) {
      const GroupPtr group = group_of(&op);
      if (group == nullptr || group->ops.size() < 2) continue;
      if (known.insert(group).second) groups.push_back(group);
    }
    bool changed = false;
    for (const GroupPtr& group : groups) {
      // A group of ops that only move elements needs no kernel.
      if (!group->is_concatenation &&
          std::ranges::all_of(group->ops, [](Instruction* op) { return only_moves(*op); })) {
        continue;
      }
      const std::vector<Instruction*> ops = without_views(fusible(*group));
      if (ops.size() < 2) continue;
      const std::string_view kind = group->is_row_fusion ? "rows"
                                    : group->is_scatter  ? lower::kScatterKind
                                                         : "elements";
      changed |= fuse(ops, std::string(kind)).has_value();
    }
    return changed;
  }

  // Without the reshapes of arrays that are in memory: of those the fusion reads a view, whose
  // elements need no division to be found.
  static std::vector<Instruction*> without_views(std::vector<Instruction*> ops) {
    const std::set<const Instruction*> within(ops.begin(), ops.end());
    std::erase_if(ops, [&](Instruction* op) {
      if (op->code() != OpCode::kReshape) return false;
      if (is_updated(op->result()) || is_updated(op->operand(0))) return false;
      const Instruction* const read = op->operand(0).def;
      return !within.contains(read) && read->code() != OpCode::kConstant;
    });
    return ops;
  }

  // The group's ops, if every result that other instructions read has the group's shape, or one
  // number per row: a result with ones among its dimensions leaves the kernel without them.
  std::vector<Instruction*> fusible(const Group& group) {
    const std::set<const Instruction*> within(group.ops.begin(), group.ops.end());
    std::vector<Instruction*> ops = group.ops;
    std::vector<Instruction*> reshaped;
    for (Instruction* op : group.ops) {
      const bool outside = std::ranges::any_of(
          op->uses(), [&](const Use& use) { return !within.contains(user(use)); });
      const Dims& dims = op->result_type().dims();
      const bool of_group = dims == group.domain || (group.is_row_fusion && dims == group.rows) ||
                            (group.is_closed && is_reduction(*op)) ||
                            (group.is_scatter && op->info().fusion == FusionKind::kScatters);
      if (!outside || of_group) continue;
      if (!is_of(group, dims) || op->result_count() != 1) return {};
      reshaped.push_back(op);
    }
    for (Instruction* op : reshaped) ops.push_back(leave_as_rows(*op, group.rows, within));
    return ops;
  }

  // Makes readers of `op` outside the group read a reshape, which is a view, of a result with one
  // number per row.
  Instruction* leave_as_rows(Instruction& op, const Dims& rows,
                             const std::set<const Instruction*>& within) {
    const auto reshape = [&](Value value, const Dims& dims, Instruction* behind) {
      auto made = std::make_unique<Instruction>(OpCode::kReshape, std::vector<Value>{value},
                                                std::vector<Type>{value.type().with_dims(dims)});
      made->set_location(op.location());
      Instruction* const placed = computation_.insert(std::move(made), behind->next());
      places_[placed] = places_[&op];
      return placed;
    };
    const std::vector<Use> uses = op.uses();
    Instruction* const row = reshape(op.result(), rows, &op);
    Instruction* const outside = reshape(row->result(), op.result_type().dims(), row);
    for (const Use& use : uses) {
      if (!within.contains(user(use))) use.user->set_operand(use.operand, outside->result());
    }
    return row;
  }

  Computation& computation_;
  const lower::CostModel& cost_;
  std::map<const Instruction*, GroupPtr> groups_;
  std::map<const Instruction*, int64_t> places_;
  std::set<const Instruction*> taken_;     // By a gather or a scatter.
  std::set<const Instruction*> repeated_;  // Those of which elements are computed more than once.
  std::set<GroupPtr> taking_;              // Groups that took others.
};

Result<bool> fuse_in(Computation& computation, const lower::CostModel& cost) {
  bool changed = false;
  for (Instruction& op : computation) {
    // Regions of other ops are scalar programs for their elements.
    if (op.code() != OpCode::kWhile && op.code() != OpCode::kIf && op.code() != OpCode::kCase) {
      continue;
    }
    for (size_t r = 0; r < op.region_count(); ++r) {
      TENON_ASSIGN(const bool inner, fuse_in(op.region(r), cost));
      changed |= inner;
    }
  }
  TENON_ASSIGN(const bool here, Fusing(computation, cost).run());
  return changed || here;
}

}  // namespace

Result<bool> fuse_elements(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool here, fuse_in(*function, options.cost));
    changed |= here;
  }
  return changed;
}

}  // namespace tenon::hlo
