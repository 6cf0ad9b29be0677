#include "core/kernel/transform/rewriter.h"

#include "core/kernel/ir/visitor.h"
#include "core/kernel/verify/proofs.h"

namespace tenon::kernel {

Rewriter::Rewriter(const Kernel& from)
    : from_(from),
      to_(from.name, from.index_type),
      values_(from.values.size()),
      memories_(from.memories.size(), kNone) {
  to_.reserve(from);
}

Kernel Rewriter::run() {
  to_.set_label(from_.label);
  for (MemoryId m = 0; m < from_.buffer_count; ++m) {
    if (!keeps(m)) continue;
    Memory buffer = from_.memory(m);
    if (buffer.over != kNone) buffer.over = keeps(buffer.over) ? memories_[buffer.over] : kNone;
    memories_[m] = to_.buffer(memory_for(buffer));
  }
  for (size_t i = 0; i < from_.scalars.size(); ++i) {
    const ValueId scalar = from_.scalars[i];
    set(scalar, to_.scalar(from_.scalar_names[i], from_.value(scalar).type));
  }
  body(to_.grid(grid()));
  return to_.finish();
}

void Rewriter::body(const Values& indices) {
  for (size_t d = 0; d < indices.size(); ++d) {
    set(from_.block(from_.body).arguments[d], indices[d]);
  }
  copy_nodes(from_.body);
}

ValueId Rewriter::map(ValueId value) {
  if (values_[value].count == 0 && from_.is_constant(value)) {
    set_parts(value, constant(from_.value(value).type, from_.value(value).bits));
  }
  return values_[value].first;
}

void Rewriter::set_parts(ValueId original, std::span<const ValueId> values) {
  Replacement& replacement = values_[original];
  replacement = {values.empty() ? kNone : values[0], static_cast<uint32_t>(values.size()), 0};
  if (values.size() < 2) return;
  replacement.at = static_cast<uint32_t>(parts_.size());
  parts_.insert(parts_.end(), values.begin() + 1, values.end());
}

void Rewriter::append_parts(Values& all, ValueId value) {
  all.push_back(map(value));
  const Replacement& known = values_[value];
  for (uint32_t i = 1; i < known.count; ++i) all.push_back(parts_[known.at + i - 1]);
}

Values Rewriter::parts(ValueId value) {
  Values all;
  append_parts(all, value);
  return all;
}

Values Rewriter::parts(std::span<const ValueId> values) {
  Values all;
  all.reserve(values.size());
  for (const ValueId value : values) append_parts(all, value);
  return all;
}

std::vector<ElementType> Rewriter::types_for(const Values& values) const {
  std::vector<ElementType> all;
  for (const ValueId value : values) {
    const std::vector<ElementType> some = types_for(from_.value(value).type);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void Rewriter::set_all(const Values& originals, const Values& values) {
  size_t next = 0;
  for (const ValueId original : originals) {
    const size_t count = types_for(from_.value(original).type).size();
    set_parts(original, std::span(values).subspan(next, count));
    next += count;
  }
}

Values Rewriter::map(const Values& values) {
  Values mapped;
  mapped.reserve(values.size());
  for (const ValueId value : values) mapped.push_back(map(value));
  return mapped;
}

Rewriter::MappedOperands Rewriter::map_operands(const Node& scalar) {
  MappedOperands operands;
  for (const ValueId operand : scalar.operands) operands.values[operands.count++] = map(operand);
  return operands;
}

void Rewriter::copy_nodes(BlockId block) {
  for (const NodeId n : from_.block(block).nodes) node(from_.node(n));
}

BlockId Rewriter::copy_block(BlockId block) {
  const BlockId copy = to_.begin_block(types_for(from_.block(block).arguments));
  set_all(from_.block(block).arguments, Values(to_.arguments(copy)));
  copy_nodes(block);
  to_.end_block(false, {});
  return copy;
}

void Rewriter::copy_node(const Node& n) {
  if (is_scalar_op(n.op)) {
    set(n.results[0], to_.op(n.op, map_operands(n).span(), n.type));
    return;
  }
  if (is<OnDeclaration>(n.op)) {
    const Memory m = memory_for(from_.memory(n.memories[0]));
    memories_[n.memories[0]] = to_.private_memory(m.name, m.type, m.dims, m.lane_rank);
    return;
  }
  Node copy = n;
  copy.operands = parts(n.operands);
  for (MemoryId& m : copy.memories) m = memories_[m];
  if (is<OnAccess>(n.op)) copy.type = to_.kernel().memory(copy.memories[0]).type;
  for (size_t b = 0; b < n.blocks.size(); ++b) copy.blocks[b] = block(n, b);
  // K5 must be proved of the copied combination.
  copy.commutative = n.commutative && is_symmetric(to_.kernel(), copy);
  set_all(n.results, to_.append(std::move(copy), types_for(n.results)));
}

}  // namespace tenon::kernel
