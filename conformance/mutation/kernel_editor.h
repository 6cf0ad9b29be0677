// Changes the operations of a kernel in place of a rewriter: ids of values stay as they are.
#pragma once

#include <functional>
#include <vector>

#include "core/kernel/ir/kernel.h"

namespace tenon::conformance {

/// Copies a kernel node by node; a change may insert operations before and after a node.
class KernelEditor {
 public:
  explicit KernelEditor(kernel::Kernel kernel) : kernel_(std::move(kernel)) {}

  /// Returns whether it changed the node. It may replace the node's operands by values that it
  /// emits, and its result by `replace_result`.
  using Change = std::function<bool(KernelEditor& editor, kernel::Node& node)>;
  /// Applies the change to each node once; returns how many it changed.
  int64_t apply(const Change& change);
  kernel::Kernel take() { return std::move(kernel_); }

  const kernel::Kernel& kernel() const { return kernel_; }
  kernel::ValueId constant(ElementType type, uint64_t bits);
  /// A number of a type, rounded to it.
  kernel::ValueId number(ElementType type, double value);
  /// Emits an operation before the node (or, in `replace_result`, behind it). `type` is that of the
  /// operands; `result` that of the result.
  kernel::ValueId emit(kernel::OpCode op, ElementType type, std::vector<kernel::ValueId> operands,
                       ElementType result);
  kernel::ValueId emit(kernel::OpCode op, ElementType type, std::vector<kernel::ValueId> operands) {
    return emit(op, type, std::move(operands), type);
  }
  kernel::ValueId convert(kernel::ValueId x, ElementType to);
  kernel::ValueId bitcast(kernel::ValueId x, ElementType to);
  kernel::ValueId compare(kernel::OpCode op, kernel::ValueId x, kernel::ValueId y);
  kernel::ValueId select(kernel::ValueId condition, kernel::ValueId x, kernel::ValueId y);
  ElementType type_of(kernel::ValueId id) const { return kernel_.value(id).type; }
  bool is_constant(kernel::ValueId id, uint64_t bits) const {
    return kernel_.is_constant(id) && kernel_.value(id).bits == bits;
  }
  ElementType index_type() const { return kernel_.index_type; }
  kernel::ValueId index(int64_t value) {
    return constant(index_type(), static_cast<uint64_t>(value));
  }

  /// Emits operations behind the node, from its result to the one that users get instead.
  using Replace = std::function<kernel::ValueId(KernelEditor& editor, kernel::ValueId result)>;
  void replace_result(kernel::Node& node, const Replace& replace);

  // --- Statements

  Dims& grid() { return kernel_.grid; }
  kernel::Memory& memory(kernel::MemoryId id) { return kernel_.memories[id]; }
  kernel::Block& block(kernel::BlockId id) { return kernel_.blocks[id]; }
  /// The last node of a block: its yield, if it has one.
  kernel::Node& last_of(kernel::BlockId id) {
    return kernel_.nodes[kernel_.blocks[id].nodes.back()];
  }
  kernel::BlockId new_block(const std::vector<ElementType>& arguments);
  kernel::ValueId new_argument(kernel::BlockId block, ElementType type);
  /// A further result of the node at hand.
  void add_result(kernel::Node& node, ElementType type);
  /// Moves what was emitted before the node to the start of a block.
  void move_emitted(kernel::BlockId block);
  /// The same to its end.
  void append_emitted(kernel::BlockId block);
  void append(kernel::BlockId block, kernel::Node node);
  /// Emits a statement without results before the node.
  void emit_node(kernel::Node node);
  /// Replaces a value in all nodes but the one at hand.
  void replace_uses(kernel::ValueId from, kernel::ValueId to);

 private:
  kernel::Kernel kernel_;
  std::vector<kernel::NodeId> emitted_;
  std::vector<kernel::NodeId> behind_;
  bool is_behind_ = false;
  kernel::NodeId at_ = kernel::kNone;  ///< The node that is changed.
};

}  // namespace tenon::conformance
