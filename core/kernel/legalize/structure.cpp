// Replaces statements by simpler ones: scans by loops, private memory by scratch, atomics by serial
// loops, reductions that lanes share by such of one lane.
#include <algorithm>

#include "core/kernel/ir/visitor.h"
#include "core/kernel/legalize/passes.h"
#include "core/kernel/transform/rewriter.h"

namespace tenon::kernel {
namespace {

bool is_missing_atomic(const Node& n, const TargetFeatures& features) {
  return n.op == OpCode::kAtomic && !features.has_atomics(n.type);
}

class StructureExpander : public Rewriter {
 public:
  StructureExpander(const Kernel& kernel, const TargetFeatures& features)
      : Rewriter(kernel), features_(features) {}

 private:
  Memory memory_for(const Memory& m) const override {
    Memory result = m;
    // Lanes that run serially have no private memory.
    const bool serial = has_missing_atomic(from().body);
    if (m.space == Space::kPrivate && (serial || !features_.private_memory)) {
      result.space = Space::kScratch;
      result.lane_rank = 0;
    }
    return result;
  }

  void node(const Node& n) override {
    if (n.op == OpCode::kScan && (!features_.scans || blocks_miss_atomic(n))) return scan(n);
    if (is_missing_atomic(n, features_)) return atomic(n);
    if (n.op == OpCode::kLanes && blocks_miss_atomic(n)) return one_lane(n);
    if (n.op == OpCode::kReduce && n.over_lanes && !features_.scratch) {
      Node alone = n;
      alone.over_lanes = false;
      return copy_node(alone);
    }
    copy_node(n);
  }

  bool has_missing_atomic(BlockId block) const {
    return any_node(from(), block,
                    [&](const Node& inner) { return is_missing_atomic(inner, features_); });
  }
  bool blocks_miss_atomic(const Node& n) const {
    return std::ranges::any_of(n.blocks, [&](BlockId b) { return has_missing_atomic(b); });
  }

  void set_arguments(BlockId block, const Values& values, size_t first = 0) {
    const std::vector<ValueId>& arguments = from().block(block).arguments;
    for (size_t i = first; i < arguments.size(); ++i) set(arguments[i], values[i - first]);
  }
  /// Copies the nodes of a block except its yield, whose operands it returns.
  Values inlined(BlockId block) {
    const std::vector<NodeId>& nodes = from().block(block).nodes;
    for (const NodeId id : nodes) {
      if (from().node(id).op == OpCode::kYield) return map(from().node(id).operands);
      node(from().node(id));
    }
    return {};
  }

  // A serial scan is a loop; a scan over lanes gives the same results in another order.
  void scan(const Node& n) {
    const Values totals = to().for_loop(
        to().index(0), to().index(n.extents[0]), 1, map(n.operands), [&](const Values& arguments) {
          const Values before(arguments.begin() + 1, arguments.end());
          set_arguments(n.blocks[0], {arguments[0]});
          Values both = before;
          const Values leaf = inlined(n.blocks[0]);
          both.insert(both.end(), leaf.begin(), leaf.end());
          set_arguments(n.blocks[1], both);
          const Values prefix = inlined(n.blocks[1]);
          Values each = {arguments[0]};
          each.insert(each.end(), prefix.begin(), prefix.end());
          set_arguments(n.blocks[2], each);
          copy_nodes(n.blocks[2]);
          return prefix;
        });
    for (size_t i = 0; i < totals.size(); ++i) set(n.results[i], totals[i]);
  }

  void atomic(const Node& n) {
    const Values operands = map(n.operands);
    const Values indices(operands.begin() + 1, operands.end());
    const MemoryId m = memory(n.memories[0]);
    const ValueId old = to().load(m, indices);
    to().store(to().binary(combination_of(n.atomic), old, operands[0]), m, indices);
  }

  void one_lane(const Node& n) {
    to().lanes({1}, [&](const Values&) { nest(n.extents, n.blocks[0], {}); });
  }
  /// Runs the block for each index of `extents`, in order.
  void nest(const Dims& extents, BlockId block, Values indices) {
    if (indices.size() == extents.size()) {
      set_arguments(block, indices);
      copy_nodes(block);
      return;
    }
    const int64_t extent = extents[indices.size()];
    to().for_loop(to().index(0), to().index(extent), 1, {}, [&](const Values& k) {
      Values more = indices;
      more.push_back(k[0]);
      nest(extents, block, more);
      return Values{};
    });
  }

  Dims grid() const override { return has_missing_atomic(from().body) ? Dims{} : from().grid; }
  void body(const Values& indices) override {
    if (!has_missing_atomic(from().body)) return Rewriter::body(indices);
    nest(from().grid, from().body, {});
  }

  const TargetFeatures& features_;
};

}  // namespace

Kernel expand_structure(const Kernel& kernel, const TargetFeatures& features) {
  return StructureExpander(kernel, features).run();
}

}  // namespace tenon::kernel
