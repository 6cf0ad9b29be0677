// Rewriter: copies a kernel node by node into a builder; what every transformation derives from.
#pragma once

#include <vector>

#include "core/kernel/builder.h"

namespace tenon::kernel {

/// Override `node` to replace some nodes; the others are copied, folded on the way.
///
///   class MathExpander : public Rewriter {
///     void node(const Node& n) override {
///       if (!is_math(n.op)) return copy_node(n);
///       map(n.results[0], expand(to(), n.op, map(n.operands[0])));
///     }
///   };
class Rewriter {
 public:
  explicit Rewriter(const Kernel& from);
  virtual ~Rewriter() = default;
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  Kernel run();

 protected:
  virtual void node(const Node& n) { copy_node(n); }
  /// Whether the new kernel has this buffer; one without it touches it nowhere.
  virtual bool keeps(MemoryId buffer) const {
    static_cast<void>(buffer);
    return true;
  }
  /// A copy of one of the blocks of a statement that is being copied.
  virtual BlockId block(const Node& owner, size_t index) { return copy_block(owner.blocks[index]); }

  const Kernel& from() const { return from_; }
  Builder& to() { return to_; }
  /// What stands for a value, or a memory, of the original.
  virtual ValueId map(ValueId value);
  Values map(const Values& values);
  MemoryId memory(MemoryId id) const { return memories_[id]; }
  void set(ValueId original, ValueId value) { values_[original] = value; }
  void set_memory(MemoryId original, MemoryId id) { memories_[original] = id; }

  void copy_node(const Node& n);
  /// The nodes of a block, where the builder stands; its arguments have been set.
  void copy_nodes(BlockId block);
  /// A copy of the block, with arguments of its own.
  BlockId copy_block(BlockId block);

 private:
  const Kernel& from_;
  Builder to_;
  Values values_;
  std::vector<MemoryId> memories_;
};

}  // namespace tenon::kernel
