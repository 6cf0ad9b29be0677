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
#include <memory>
#include <set>

#include "hlo/lower/schedules/own_kernels.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/fusion/groups.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

using fusion::FusionGroups;
using fusion::Group;
using fusion::GroupPtr;
using fusion::is_reduction;
using fusion::is_updated;
using fusion::only_moves;

// Makes the groups of a computation fusions.
class Fusing {
 public:
  Fusing(Computation& computation, const lower::CostModel& cost) : groups_(computation, cost) {}

  Result<bool> run() {
    fusion::join_operands(groups_);
    fusion::take_movers(groups_);
    fusion::take_producers(groups_);
    fusion::rematerialize(groups_);
    return fuse_groups();
  }

 private:
  Result<bool> fuse_groups() {
    std::vector<GroupPtr> groups;
    std::set<GroupPtr> known;
    for (Instruction& op : groups_.computation()) {
      const GroupPtr group = groups_.of(&op);
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
          op->uses(), [&](const Use& use) { return !within.contains(groups_.user(use)); });
      const Dims& dims = op->result_type().dims();
      const bool of_group = dims == group.domain || (group.is_row_fusion && dims == group.rows) ||
                            (group.is_closed && is_reduction(*op)) ||
                            (group.is_scatter && op->info().fusion == FusionKind::kScatters);
      if (!outside || of_group) continue;
      if (!group.has(dims) || op->result_count() != 1) return {};
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
      Instruction* const placed = groups_.computation().insert(std::move(made), behind->next());
      groups_.set_place(placed, op);
      return placed;
    };
    const std::vector<Use> uses = op.uses();
    Instruction* const row = reshape(op.result(), rows, &op);
    Instruction* const outside = reshape(row->result(), op.result_type().dims(), row);
    for (const Use& use : uses) {
      if (!within.contains(groups_.user(use)))
        use.user->set_operand(use.operand, outside->result());
    }
    return row;
  }

  FusionGroups groups_;
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
