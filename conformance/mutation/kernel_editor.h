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

  /// Emits operations behind the node, from its result to the one that users get instead.
  using Replace = std::function<kernel::ValueId(KernelEditor& editor, kernel::ValueId result)>;
  void replace_result(kernel::Node& node, const Replace& replace);

 private:
  kernel::Kernel kernel_;
  std::vector<kernel::NodeId> emitted_;
  std::vector<kernel::NodeId> behind_;
  bool is_behind_ = false;
  std::vector<std::pair<kernel::ValueId, kernel::ValueId>> aliases_;
};

}  // namespace tenon::conformance
