#include "core/kernel/analysis/in_place.h"

#include <algorithm>

namespace tenon::kernel {
namespace {

// A load or store of a buffer.
struct BufferAccess {
  size_t order = 0;  // Position in the text.
  BlockId block = 0;
  bool repeated = false;  // Within a loop inside one iteration.
  std::vector<ValueId> index;
};

struct Touches {
  std::vector<BufferAccess> loads;
  std::vector<BufferAccess> stores;
  bool otherwise = false;  // Also touched by a copy, contract or atomic.
};

class BufferAccesses {
 public:
  explicit BufferAccesses(const Kernel& kernel)
      : kernel_(kernel), of_(kernel.buffer_count), parents_(kernel.blocks.size(), kNone) {
    walk(kernel.body, false);
  }

  bool is_pair(MemoryId out, MemoryId in) const {
    const Memory& over = kernel_.memory(out);
    const Memory& under = kernel_.memory(in);
    const bool alike = over.access == Access::kOut && under.access == Access::kIn &&
                       over.type == under.type && over.dims == under.dims &&
                       over.resolved_strides() == under.resolved_strides() && !under.packed;
    const Touches& written = of_[out];
    const Touches& read = of_[in];
    if (!alike || written.otherwise || read.otherwise) return false;
    return std::ranges::all_of(
               written.stores,
               [&](const BufferAccess& store) {
                 return !store.repeated &&
                        std::ranges::all_of(read.loads, [&](const BufferAccess& load) {
                          return load.order < store.order && is_within(load.block, store.block);
                        });
               }) &&
           std::ranges::all_of(read.loads, [&](const BufferAccess& load) {
             return std::ranges::any_of(written.stores, [&](const BufferAccess& store) {
               return same_place(load, store);
             });
           });
  }

 private:
  void walk(BlockId block, bool repeated) {
    for (const NodeId id : kernel_.block(block).nodes) {
      const Node& node = kernel_.node(id);
      for (const MemoryId memory : node.memories) {
        if (memory < kernel_.buffer_count) touch(node, memory, block, repeated);
      }
      const bool once = node.op == OpCode::kLanes || node.op == OpCode::kIf;
      for (const BlockId inner : node.blocks) {
        parents_[inner] = block;
        walk(inner, repeated || !once);
      }
    }
  }

  void touch(const Node& node, MemoryId memory, BlockId block, bool repeated) {
    Touches& touches = of_[memory];
    BufferAccess touch{order_++, block, repeated, {}};
    if (node.op == OpCode::kLoad) {
      touch.index = node.operands;
      touches.loads.push_back(std::move(touch));
    } else if (node.op == OpCode::kStore) {
      touch.index.assign(node.operands.begin() + 1, node.operands.end());
      touches.stores.push_back(std::move(touch));
    } else {
      touches.otherwise = true;
    }
  }

  // Whether `block` is `outer` or lies within it.
  bool is_within(BlockId block, BlockId outer) const {
    while (block != outer && block != kNone) block = parents_[block];
    return block == outer;
  }

  bool same_place(const BufferAccess& a, const BufferAccess& b) const {
    return std::ranges::equal(a.index, b.index, [&](ValueId x, ValueId y) {
      const bool constants = kernel_.is_constant(x) && kernel_.is_constant(y);
      return x == y || (constants && kernel_.value(x).bits == kernel_.value(y).bits);
    });
  }

  const Kernel& kernel_;
  std::vector<Touches> of_;
  std::vector<BlockId> parents_;
  size_t order_ = 0;
};

}  // namespace

std::vector<std::pair<MemoryId, MemoryId>> in_place_pairs(const Kernel& kernel) {
  const BufferAccesses touched(kernel);
  std::vector<std::pair<MemoryId, MemoryId>> pairs;
  for (MemoryId out = 0; out < kernel.buffer_count; ++out) {
    // A buffer is over one that comes before it.
    for (MemoryId in = 0; in < out; ++in) {
      if (touched.is_pair(out, in)) pairs.emplace_back(out, in);
    }
  }
  return pairs;
}

}  // namespace tenon::kernel
