#include "conformance/mutation/kernel_editor.h"

#include <algorithm>

#include "core/types/float_convert.h"

namespace tenon::conformance {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::Value;
using kernel::ValueId;

int64_t KernelEditor::apply(const Change& change) {
  int64_t changed = 0;
  const size_t blocks = kernel_.blocks.size();
  for (size_t b = 0; b < blocks; ++b) {
    std::vector<NodeId> nodes;
    for (const NodeId id : std::vector<NodeId>(kernel_.blocks[b].nodes)) {
      at_ = id;
      emitted_.clear();
      behind_.clear();
      Node node = kernel_.nodes[id];
      if (change(*this, node)) ++changed;
      kernel_.nodes[id] = std::move(node);
      nodes.insert(nodes.end(), emitted_.begin(), emitted_.end());
      nodes.push_back(id);
      nodes.insert(nodes.end(), behind_.begin(), behind_.end());
    }
    kernel_.blocks[b].nodes = std::move(nodes);
  }
  kernel_.lines.clear();
  return changed;
}

ValueId KernelEditor::constant(ElementType type, uint64_t bits) {
  Value value;
  value.type = type;
  value.bits = bits;
  kernel_.values.push_back(value);
  return static_cast<ValueId>(kernel_.values.size() - 1);
}

ValueId KernelEditor::number(ElementType type, double value) {
  if (is_float(type)) return constant(type, encode_float(type, value));
  return constant(type, static_cast<uint64_t>(static_cast<int64_t>(value)));
}

ValueId KernelEditor::emit(OpCode op, ElementType type, std::vector<ValueId> operands,
                           ElementType result) {
  Value value;
  value.type = result;
  value.kind = kernel::ValueKind::kResult;
  value.node = static_cast<NodeId>(kernel_.nodes.size());
  kernel_.values.push_back(value);
  Node node;
  node.op = op;
  node.type = result;
  const bool is_comparison = result == ElementType::kPred && type != ElementType::kPred;
  if (is_comparison) node.type = type;
  if (op == OpCode::kConvert || op == OpCode::kBitcast) {
    node.type = result;
    node.from = type;
  }
  node.operands = std::move(operands);
  node.results = {static_cast<ValueId>(kernel_.values.size() - 1)};
  const ValueId made = node.results[0];
  kernel_.nodes.push_back(std::move(node));
  (is_behind_ ? behind_ : emitted_).push_back(static_cast<NodeId>(kernel_.nodes.size() - 1));
  return made;
}

ValueId KernelEditor::convert(ValueId x, ElementType to) {
  return emit(OpCode::kConvert, type_of(x), {x}, to);
}
ValueId KernelEditor::bitcast(ValueId x, ElementType to) {
  return emit(OpCode::kBitcast, type_of(x), {x}, to);
}
ValueId KernelEditor::compare(OpCode op, ValueId x, ValueId y) {
  return emit(op, type_of(x), {x, y}, ElementType::kPred);
}
ValueId KernelEditor::select(ValueId condition, ValueId x, ValueId y) {
  return emit(OpCode::kSelect, type_of(x), {condition, x, y});
}

void KernelEditor::replace_result(Node& node, const Replace& replace) {
  // The node gets a new result; the last operation behind it defines the old one.
  const ValueId old = node.results[0];
  const NodeId owner = kernel_.values[old].node;
  Value inner = kernel_.values[old];
  kernel_.values.push_back(inner);
  const auto fresh = static_cast<ValueId>(kernel_.values.size() - 1);
  node.results[0] = fresh;
  is_behind_ = true;
  const ValueId last = replace(*this, fresh);
  is_behind_ = false;
  kernel_.values[fresh].node = owner;
  if (last == fresh) {
    node.results[0] = old;
    return;
  }
  // `last` was emitted behind the node: it takes the old id.
  const NodeId definer = kernel_.values[last].node;
  kernel_.nodes[definer].results[0] = old;
  kernel_.values[old].node = definer;
}

kernel::BlockId KernelEditor::new_block(const std::vector<ElementType>& arguments) {
  kernel_.blocks.emplace_back();
  const auto block = static_cast<kernel::BlockId>(kernel_.blocks.size() - 1);
  for (const ElementType type : arguments) new_argument(block, type);
  return block;
}

ValueId KernelEditor::new_argument(kernel::BlockId block, ElementType type) {
  Value value;
  value.type = type;
  value.kind = kernel::ValueKind::kArgument;
  kernel_.values.push_back(value);
  const auto made = static_cast<ValueId>(kernel_.values.size() - 1);
  kernel_.blocks[block].arguments.push_back(made);
  return made;
}

void KernelEditor::add_result(Node& node, ElementType type) {
  Value value;
  value.type = type;
  value.kind = kernel::ValueKind::kResult;
  value.node = at_;
  kernel_.values.push_back(value);
  node.results.push_back(static_cast<ValueId>(kernel_.values.size() - 1));
}

void KernelEditor::move_emitted(kernel::BlockId block) {
  std::vector<NodeId>& nodes = kernel_.blocks[block].nodes;
  nodes.insert(nodes.begin(), emitted_.begin(), emitted_.end());
  emitted_.clear();
}

void KernelEditor::append_emitted(kernel::BlockId block) {
  std::vector<NodeId>& nodes = kernel_.blocks[block].nodes;
  nodes.insert(nodes.end(), emitted_.begin(), emitted_.end());
  emitted_.clear();
}

void KernelEditor::append(kernel::BlockId block, Node node) {
  kernel_.nodes.push_back(std::move(node));
  kernel_.blocks[block].nodes.push_back(static_cast<NodeId>(kernel_.nodes.size() - 1));
}

void KernelEditor::emit_node(Node node) {
  kernel_.nodes.push_back(std::move(node));
  emitted_.push_back(static_cast<NodeId>(kernel_.nodes.size() - 1));
}

void KernelEditor::replace_uses(ValueId from, ValueId to) {
  for (Node& node : kernel_.nodes) std::ranges::replace(node.operands, from, to);
}

}  // namespace tenon::conformance
