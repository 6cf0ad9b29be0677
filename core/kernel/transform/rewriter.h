// core/kernel/transform/: rewrites kernels for any target.
//
// Rewriter: copies a kernel node by node into a builder; the base of every transformation.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/kernel/ir/builder.h"

namespace tenon::kernel {

/// Override `node` to replace some nodes; the others are copied and folded.
///
///   class MathExpander : public Rewriter {
///     void node(const Node& n) override {
///       if (!is_math(n.op)) return copy_node(n);
///       set(n.results[0], expand(to(), n.op, map(n.operands[0])));
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
  /// Whether the new kernel has this buffer; if not, it must not access it.
  virtual bool keeps(MemoryId buffer) const {
    static_cast<void>(buffer);
    return true;
  }
  /// The types of the values that replace a value of this type; by default the same type. Block
  /// arguments, carried values and results follow it. A pass that changes types must also override
  /// how operations, loads and stores of those types are copied.
  virtual std::vector<ElementType> types_for(ElementType type) const { return {type}; }
  /// The values that replace a constant.
  virtual Values constant(ElementType type, uint64_t bits) { return {to_.constant(type, bits)}; }
  /// The memory that replaces `m`; a buffer must keep its size in bytes.
  virtual Memory memory_for(const Memory& m) const { return m; }
  /// The new kernel's grid, and its body for the given indices.
  virtual Dims grid() const { return from_.grid; }
  virtual void body(const Values& indices);
  /// A copy of block `index` of a statement that is being copied.
  virtual BlockId block(const Node& owner, size_t index) { return copy_block(owner.blocks[index]); }

  const Kernel& from() const { return from_; }
  Builder& to() { return to_; }
  /// The value, or memory, that replaces one of the original.
  virtual ValueId map(ValueId value);
  Values map(const Values& values);
  /// All values that replace it; or those that replace each of a list, concatenated.
  Values parts(ValueId value);
  Values parts(std::span<const ValueId> values);
  /// One of the values that replace it.
  ValueId part(ValueId value, size_t i) {
    const ValueId first = map(value);
    return i == 0 ? first : parts_[values_[value].at + i - 1];
  }
  MemoryId memory(MemoryId id) const { return memories_[id]; }
  void set(ValueId original, ValueId value) { values_[original] = {value, 1, 0}; }
  void set_parts(ValueId original, std::span<const ValueId> values);
  void set_parts(ValueId original, std::initializer_list<ValueId> values) {
    set_parts(original, std::span(values.begin(), values.size()));
  }
  void set_memory(MemoryId original, MemoryId id) { memories_[original] = id; }

  /// The operands of an operation on scalars.
  struct MappedOperands {
    std::array<ValueId, 3> values{};
    size_t count = 0;
    std::span<const ValueId> span() const { return {values.data(), count}; }
  };
  MappedOperands map_operands(const Node& scalar);

  void copy_node(const Node& n);
  /// T of an operation: the type of its operands; for a select, that of the selected values.
  ElementType type_of_operand(const Node& n) const { return from_.value(n.operands.back()).type; }
  /// Copies the nodes of a block at the builder's position; its arguments must be set.
  void copy_nodes(BlockId block);
  /// A copy of the block with its own arguments.
  BlockId copy_block(BlockId block);

 private:
  const Kernel& from_;
  void set_all(const Values& originals, const Values& values);
  std::vector<ElementType> types_for(const Values& values) const;

  // The values that replace one: the first, and the others in parts_ from `at` on.
  struct Replacement {
    ValueId first = kNone;
    uint32_t count = 0;  // 0 until known
    uint32_t at = 0;
  };
  void append_parts(Values& all, ValueId value);

  Builder to_;
  std::vector<Replacement> values_;
  std::vector<ValueId> parts_;
  std::vector<MemoryId> memories_;
};

}  // namespace tenon::kernel
