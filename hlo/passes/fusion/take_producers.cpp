// Gathers, scatters and concatenations take the ops that compute what they read.
#include <algorithm>

#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/lower_op.h"
#include "hlo/passes/fusion/groups.h"

namespace tenon::hlo::fusion {
namespace {

class Producers {
 public:
  explicit Producers(FusionGroups& groups) : groups_(groups) {}

  void take_producers() {
    std::vector<Instruction*> ops;
    for (Instruction& op : groups_.computation()) ops.push_back(&op);
    for (auto at = ops.rbegin(); at != ops.rend(); ++at) take_producer(**at);
  }

  void take_parts() {
    for (Instruction& op : groups_.computation()) {
      if (op.code() == OpCode::kConcatenate && groups_.of(&op) == nullptr) take_parts_of(op);
    }
  }

 private:
  // --- Gathers and scatters

  // Adds `op`, or its group, to the group whose gathers or scatters are the only readers of it.
  void take_producer(Instruction& op) {
    const bool joins = op.code() == OpCode::kConcatenate || only_moves(op) || is_elementwise(op);
    if (!joins || !has_known_sizes(op) || op.uses().empty()) return;
    const GroupPtr mine = groups_.of(&op);
    if (mine != nullptr &&
        (mine->is_row_fusion || mine->is_closed || mine->product != nullptr || mine->has_taken)) {
      return;
    }
    const std::vector<Instruction*> taken = mine ? mine->ops : std::vector<Instruction*>{&op};
    GroupPtr reader;
    bool is_repeated = false;
    for (const Instruction* each : taken) {
      for (const Use& use : each->uses()) {
        if (use.user->parent() != &groups_.computation()) return;
        const GroupPtr theirs = groups_.of(use.user);
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
    if (!groups_.is_small(with)) return;
    reader->has_taken = true;
    for (Instruction* each : taken) {
      groups_.add(reader, each);
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

  // --- Concatenations

  void take_parts_of(Instruction& concatenate) {
    constexpr size_t kMostParts = 16;
    if (concatenate.operand_count() > kMostParts || !has_known_sizes(concatenate)) return;
    auto group = std::make_shared<Group>();
    group->ops = {&concatenate};
    Instruction* const next = concatenate.uses().size() == 1 ? concatenate.uses()[0].user : nullptr;
    const bool is_transposed = next != nullptr && next->parent() == &groups_.computation() &&
                               next->code() == OpCode::kTranspose && groups_.of(next) == nullptr &&
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
    if (groups_.is_small(*group) && !reads_updated(*group)) groups_.set(group);
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
    const auto within = [&](const Instruction* one) { return group.contains(one); };
    if (within(&op) || op.parent() != &groups_.computation() || !has_known_sizes(op)) return;
    const GroupPtr mine = groups_.of(&op);
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
        mine->has_taken) {
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

  FusionGroups& groups_;
  std::set<const Instruction*> taken_;     // By a gather or a scatter.
  std::set<const Instruction*> repeated_;  // Those of which elements are computed more than once.
};

}  // namespace

void take_producers(FusionGroups& groups) {
  Producers producers(groups);
  producers.take_producers();
  producers.take_parts();
}

}  // namespace tenon::hlo::fusion
