#include "core/kernel/rewriter.h"

namespace tenon::kernel {

Rewriter::Rewriter(const Kernel& from)
    : from_(from),
      to_(from.name, from.index_type),
      values_(from.values.size(), kNone),
      memories_(from.memories.size(), kNone) {}

Kernel Rewriter::run() {
  to_.set_label(from_.label);
  for (MemoryId m = 0; m < from_.buffer_count; ++m) {
    if (!keeps(m)) continue;
    Memory buffer = from_.memory(m);
    if (buffer.over != kNone) buffer.over = keeps(buffer.over) ? memories_[buffer.over] : kNone;
    memories_[m] = to_.buffer(std::move(buffer));
  }
  for (size_t i = 0; i < from_.scalars.size(); ++i) {
    const ValueId scalar = from_.scalars[i];
    values_[scalar] = to_.scalar(from_.scalar_names[i], from_.value(scalar).type);
  }
  const Values indices = to_.grid(from_.grid);
  for (size_t d = 0; d < indices.size(); ++d) {
    values_[from_.block(from_.body).arguments[d]] = indices[d];
  }
  copy_nodes(from_.body);
  return to_.finish();
}

ValueId Rewriter::map(ValueId value) {
  if (values_[value] == kNone && from_.is_constant(value)) {
    values_[value] = to_.constant(from_.value(value).type, from_.value(value).bits);
  }
  return values_[value];
}

Values Rewriter::map(const Values& values) {
  Values mapped;
  mapped.reserve(values.size());
  for (const ValueId value : values) mapped.push_back(map(value));
  return mapped;
}

void Rewriter::copy_nodes(BlockId block) {
  for (const NodeId n : from_.block(block).nodes) node(from_.node(n));
}

BlockId Rewriter::copy_block(BlockId block) {
  std::vector<ElementType> types;
  for (const ValueId argument : from_.block(block).arguments) {
    types.push_back(from_.value(argument).type);
  }
  const BlockId copy = to_.begin_block(types);
  for (size_t i = 0; i < types.size(); ++i) {
    values_[from_.block(block).arguments[i]] = to_.arguments(copy)[i];
  }
  copy_nodes(block);
  to_.end_block(false, {});
  return copy;
}

void Rewriter::copy_node(const Node& n) {
  if (is_scalar_op(n.op)) {
    set(n.results[0], to_.op(n.op, map(n.operands), n.type));
    return;
  }
  if (n.op == OpCode::kScratch || n.op == OpCode::kPrivate) {
    const Memory& m = from_.memory(n.memories[0]);
    memories_[n.memories[0]] = to_.private_memory(m.name, m.type, m.dims, m.lane_rank);
    return;
  }
  Node copy = n;
  copy.operands = map(n.operands);
  for (MemoryId& m : copy.memories) m = memories_[m];
  for (size_t b = 0; b < n.blocks.size(); ++b) copy.blocks[b] = block(n, b);
  std::vector<ElementType> types;
  for (const ValueId result : n.results) types.push_back(from_.value(result).type);
  const Values results = to_.append(std::move(copy), types);
  for (size_t i = 0; i < results.size(); ++i) set(n.results[i], results[i]);
}

}  // namespace tenon::kernel
