// Loops and branches.
#include <algorithm>

#include "backends/gpu/codegen/emitter.h"
#include "backends/llvm/loops.h"
#include "backends/llvm/operations.h"
#include "core/kernel/ir/visitor.h"

namespace tenon::gpu {

using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;

namespace {

constexpr int64_t kMostTurns = 64;  // Iterations of a loop that may be unrolled.
// The maximum size of an unrolled loop that only encloses accesses to private memory, without
// indexing it itself.
constexpr int64_t kMostNodes = 1 << 15;

}  // namespace

bool GpuKernelEmitter::touches_private(kernel::BlockId id) const {
  return any_node(kernel_, id, [&](const Node& node) { return names_private(node); });
}

bool GpuKernelEmitter::names_private(const Node& n) const {
  return std::ranges::any_of(n.memories, [&](kernel::MemoryId m) {
    return kernel_.memory(m).space == kernel::Space::kPrivate;
  });
}

// Whether an index into private memory depends on one of `values`; adds the values of the block
// that depend on them.
bool GpuKernelEmitter::indexes_private(kernel::BlockId id,
                                       std::set<kernel::ValueId>& values) const {
  const auto known = [&](kernel::ValueId value) { return values.contains(value); };
  return any_node(kernel_, id, [&](const Node& node) {
    if (!std::ranges::any_of(node.operands, known)) return false;
    if (kernel::is_scalar_op(node.op)) values.insert(node.results[0]);
    return names_private(node);
  });
}

// The number of nodes of a block after all loops with constant bounds have been unrolled.
int64_t GpuKernelEmitter::unrolled_size(kernel::BlockId id) const {
  int64_t size = 0;
  for (const NodeId n : kernel_.block(id).nodes) {
    const Node& node = kernel_.node(n);
    int64_t inner = 1;
    for (const kernel::BlockId each : node.blocks) inner += unrolled_size(each);
    size += inner * (node.op == OpCode::kFor ? turns_of(node).value_or(1) : 1);
    size = std::min(size, kMostNodes + 1);
  }
  return size;
}

std::optional<int64_t> GpuKernelEmitter::turns_of(const Node& n) const {
  const kernel::Value& low = kernel_.value(n.operands[0]);
  const kernel::Value& high = kernel_.value(n.operands[1]);
  if (low.kind != kernel::ValueKind::kConstant || high.kind != kernel::ValueKind::kConstant) {
    return std::nullopt;
  }
  const auto first = static_cast<int64_t>(low.bits);
  const auto end = static_cast<int64_t>(high.bits);
  return end <= first ? 0 : (end - first - 1) / n.extents[0] + 1;
}

// Loops that index a thread's array must be unrolled, so that the array becomes registers.
// Unrolling loops around these also pays, because equal loads of different iterations become one.
bool GpuKernelEmitter::is_unrolled(const Node& n) const {
  const auto turns = turns_of(n);
  if (!in_lanes_ || !turns || *turns > kMostTurns) return false;
  std::set<kernel::ValueId> index = {kernel_.block(n.blocks[0]).arguments[0]};
  if (indexes_private(n.blocks[0], index)) return true;
  return touches_private(n.blocks[0]) && *turns * unrolled_size(n.blocks[0]) <= kMostNodes;
}

void GpuKernelEmitter::for_loop(const Node& n) {
  const int64_t step = n.extents[0];
  // The last step may overflow the type of indices.
  const bool narrow =
      kernel_.index_type == ElementType::kS32 && ranges_.of(n.operands[1]).high + step <= INT32_MAX;
  llvm::Type* const type = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* const low = b_.CreateSExtOrTrunc(scalar(n.operands[0]), type);
  Value* const high = b_.CreateSExtOrTrunc(scalar(n.operands[1]), type);
  const AccessSummary before = touched_;
  if (outside()) touched_.add(plan_.touched(n));
  count(n, low, high, is_unrolled(n));
  touched_.add(before);
}

void GpuKernelEmitter::while_loop(const Node& n) {
  AccessSummary tested;
  const auto condition = [&] {
    if (outside()) touched_.add(plan_.touched(n));
    const Many go = block(n.blocks[0]);
    tested = touched_;
    return go[0][0];
  };
  repeat(n, condition, [&] { return block(n.blocks[1]); });
  touched_ = std::move(tested);
}

void GpuKernelEmitter::if_else(const Node& n) {
  const AccessSummary before = touched_;
  AccessSummary either;
  choose(n, scalar(n.operands[0]), [&](size_t side) {
    touched_ = before;
    Many given = block(n.blocks[side]);
    either.add(touched_);
    return given;
  });
  touched_ = std::move(either);
}

}  // namespace tenon::gpu
