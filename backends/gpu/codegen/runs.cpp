#include "backends/gpu/codegen/runs.h"

#include <algorithm>

#include "core/kernel/ir/visitor.h"

namespace tenon::gpu {

using kernel::BlockId;
using kernel::Memory;
using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::ValueId;
using kernel::ValueKind;

namespace {

constexpr int64_t kAccessBytes = 16;
constexpr size_t kMostNodesInRun = 2000;  // In a run: each node is emitted once for an iteration.
// Divisors are powers of two, tracked up to the widest run.
constexpr int64_t kGreatestDivisor = kAccessBytes;

int64_t divisor_of(int64_t number) {
  int64_t divisor = 1;
  while (divisor < kGreatestDivisor && (number & divisor) == 0) divisor *= 2;
  return divisor;
}

int64_t product(int64_t x, int64_t y) { return std::min(x * y, kGreatestDivisor); }

}  // namespace

AccessRuns::AccessRuns(const kernel::Kernel& kernel, const kernel::Ranges& ranges, const Node& node)
    : kernel_(kernel), ranges_(ranges) {
  const int64_t bytes = widest(node.blocks[0]);
  if (node.extents.empty() || bytes == 0) return;
  for (const Node& n : kernel.nodes) {
    if (n.op == OpCode::kFor) loops_[kernel.block(n.blocks[0]).arguments[0]] = &n;
  }
  const size_t nodes = size(node.blocks[0]);
  for (int64_t width = kAccessBytes / bytes; width > 1; width /= 2) {
    if (node.extents.back() == 0 || node.extents.back() % width != 0) continue;
    if (nodes * static_cast<size_t>(width) > kMostNodesInRun) continue;
    if (try_width(node, width)) return;
  }
  width_ = 1;
  facts_.clear();
}

bool AccessRuns::try_width(const Node& node, int64_t width) {
  width_ = width;
  facts_.clear();
  has_loops_ = moves_neighbours_ = false;
  const std::vector<ValueId>& indices = kernel_.block(node.blocks[0]).arguments;
  for (const ValueId index : indices) facts_[index] = {0, 1};
  facts_[indices.back()] = {1, width};
  if (!block(node.blocks[0])) return false;
  return moves_neighbours_;
}

int64_t AccessRuns::widest(BlockId id) const {
  int64_t bytes = 0;
  for_each_node(kernel_, id, [&](const Node& node) {
    for (const kernel::MemoryId m : node.memories) {
      bytes = std::max(bytes, static_cast<int64_t>(storage_bytes(kernel_.memory(m).type)));
    }
  });
  return bytes;
}

size_t AccessRuns::size(BlockId id) const {
  size_t count = 0;
  for_each_node(kernel_, id, [&](const Node&) { ++count; });
  return count;
}

AccessRuns::Fact AccessRuns::fact(ValueId value) const {
  const auto found = facts_.find(value);
  if (found != facts_.end()) return found->second;
  const auto [known, is_new] = outside_.try_emplace(value);
  if (is_new) known->second = outside(value);
  return known->second;
}

// The fact about a value defined outside of the loop.
AccessRuns::Fact AccessRuns::outside(ValueId value) const {
  const kernel::Value& v = kernel_.value(value);
  if (!is_integer(v.type)) return {0, 1};
  if (v.kind == ValueKind::kConstant) {
    return {0, divisor_of(static_cast<int64_t>(v.bits))};
  }
  if (const auto loop = loops_.find(value); loop != loops_.end()) {
    const Node& n = *loop->second;
    return {0, std::min(fact(n.operands[0]).divisor, divisor_of(n.extents[0]))};
  }
  if (v.kind != ValueKind::kResult) return {0, 1};
  const Node& n = kernel_.node(v.node);
  if (!kernel::is_scalar_op(n.op)) return {0, 1};
  return {0, result(n).divisor};
}

bool AccessRuns::block(BlockId id) {
  return std::ranges::all_of(kernel_.block(id).nodes,
                             [&](NodeId n) { return node(kernel_.node(n)); });
}

bool AccessRuns::node(const Node& n) {
  return visit(n, kernel::Overloads{
                      [](kernel::OnStatement) { return false; },  // A run cannot contain it.
                      [&](kernel::OnScalar) {
                        scalar(n);
                        return true;
                      },
                      [&](kernel::OnLoad) { return access(n); },
                      [&](kernel::OnStore) { return access(n); },
                      [&](kernel::OnIf) {
                        if (!same(n.operands[0])) return false;
                        for (const ValueId value : n.results) facts_[value] = {std::nullopt, 1};
                        return block(n.blocks[0]) && block(n.blocks[1]);
                      },
                      [&](kernel::OnFor) {
                        if (!same(n.operands[0]) || !same(n.operands[1])) return false;
                        loop(n);
                        return block(n.blocks[0]);
                      },
                      [&](kernel::OnReduce) {
                        loop(n);
                        return block(n.blocks[0]) && block(n.blocks[1]);
                      },
                      [&](kernel::OnScan) {
                        loop(n);
                        return std::ranges::all_of(n.blocks, [&](BlockId b) { return block(b); });
                      },
                      [](kernel::OnYield) { return true; },
                  });
}

// The indices of an inner loop are the same in all iterations; carried values may be anything.
void AccessRuns::loop(const Node& n) {
  has_loops_ = true;
  const auto anything = [&](ValueId value) { facts_[value] = {std::nullopt, 1}; };
  for (const ValueId value : n.results) anything(value);
  const std::vector<ValueId>& arguments = kernel_.block(n.blocks[0]).arguments;
  if (n.op == OpCode::kReduce) {
    for (const ValueId index : arguments) facts_[index] = {0, 1};
    for (const ValueId side : kernel_.block(n.blocks[1]).arguments) anything(side);
    return;
  }
  if (n.op == OpCode::kScan) {
    facts_[arguments[0]] = {0, 1};
    for (const ValueId side : kernel_.block(n.blocks[1]).arguments) anything(side);
    const std::vector<ValueId>& each = kernel_.block(n.blocks[2]).arguments;
    for (const ValueId prefix : each) anything(prefix);
    facts_[each[0]] = {0, 1};
    return;
  }
  for (const ValueId each : arguments) anything(each);
  facts_[arguments[0]] = {0, std::min(fact(n.operands[0]).divisor, divisor_of(n.extents[0]))};
}

bool AccessRuns::access(const Node& n) {
  const Memory& m = kernel_.memory(n.memories[0]);
  if (m.space == kernel::Space::kPrivate || m.packed) return false;
  const Dims strides = m.resolved_strides();
  int64_t growth = 0;
  int64_t divisor = kGreatestDivisor;
  for (size_t d = 0; d < strides.size(); ++d) {
    const Fact index = fact(indices_of(n)[d]);
    if (!index.growth) return false;
    growth += *index.growth * strides[d];
    divisor = std::min(divisor, product(index.divisor, divisor_of(strides[d])));
  }
  const bool load = n.op == OpCode::kLoad;
  if (growth == 0) {
    if (load) facts_[n.results[0]] = {0, 1};
    return load;
  }
  if (growth != 1 || divisor % width_ != 0) return false;
  if (load) facts_[n.results[0]] = {std::nullopt, 1};
  moves_neighbours_ = true;
  return true;
}

// Whether the result of a comparison changes only between runs.
bool AccessRuns::splits_at_runs(const Node& n) const {
  const bool strict = n.op == OpCode::kLt || n.op == OpCode::kGe;
  const bool mirrored = n.op == OpCode::kGt || n.op == OpCode::kLe;
  if (!strict && !mirrored) return false;
  if (!is_signed_integer(kernel_.value(n.operands[0]).type)) return false;
  const Fact grows = fact(n.operands[strict ? 0 : 1]);
  const Fact bound = fact(n.operands[strict ? 1 : 0]);
  return grows.growth == 1 && bound.growth == 0 && grows.divisor % width_ == 0 &&
         bound.divisor % width_ == 0;
}

void AccessRuns::scalar(const Node& n) {
  const bool all_same =
      std::ranges::all_of(n.operands, [&](ValueId each) { return fact(each).growth == 0; });
  if (all_same || splits_at_runs(n)) {
    facts_[n.results[0]] = {0, result(n).divisor};
    return;
  }
  facts_[n.results[0]] = result(n);
}

// The fact about a result of index arithmetic that does not wrap.
AccessRuns::Fact AccessRuns::result(const Node& n) const {
  const ValueId value = n.results[0];
  const ElementType type = kernel_.value(value).type;
  if (!is_signed_integer(type) || ranges_.may_overflow(value)) return {std::nullopt, 1};
  const auto of = [&](size_t i) { return fact(n.operands[i]); };
  if (n.op == OpCode::kConvert) {
    return is_signed_integer(kernel_.value(n.operands[0]).type) ? of(0) : Fact{std::nullopt, 1};
  }
  if (n.op != OpCode::kAdd && n.op != OpCode::kSub && n.op != OpCode::kMul) {
    return {std::nullopt, 1};
  }
  const Fact x = of(0);
  const Fact y = of(1);
  if (n.op == OpCode::kMul) {
    const int64_t divisor = product(x.divisor, y.divisor);
    for (size_t c = 0; c < 2; ++c) {
      const kernel::Value& factor = kernel_.value(n.operands[c]);
      const Fact& other = c == 0 ? y : x;
      if (factor.kind == ValueKind::kConstant && other.growth) {
        return {*other.growth * static_cast<int64_t>(factor.bits), divisor};
      }
    }
    return {std::nullopt, divisor};
  }
  const int64_t divisor = std::min(x.divisor, y.divisor);
  if (!x.growth || !y.growth) return {std::nullopt, divisor};
  return {n.op == OpCode::kAdd ? *x.growth + *y.growth : *x.growth - *y.growth, divisor};
}

}  // namespace tenon::gpu
