#include "backends/gpu/codegen/block_plan.h"

#include <algorithm>

#include "core/kernel/ir/visitor.h"

namespace tenon::gpu {

using kernel::BlockId;
using kernel::kNone;
using kernel::Memory;
using kernel::MemoryId;
using kernel::Node;
using kernel::NodeId;
using kernel::OpCode;
using kernel::Space;

namespace {

constexpr int64_t kAlignment = 16;
// The number of threads that keeps a chip busy. Runs whose iterations are loops are not used if
// they leave fewer threads.
constexpr int64_t kEnoughThreads = 1 << 14;

int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool overlap(const MemoryRange& x, const MemoryRange& y) {
  return x.shared == y.shared && x.begin < y.end && y.begin < x.end;
}

bool overlap(const std::vector<MemoryRange>& list, const std::vector<MemoryRange>& others) {
  return std::ranges::any_of(list, [&](const MemoryRange& x) {
    return std::ranges::any_of(others, [&](const MemoryRange& y) { return overlap(x, y); });
  });
}

void note(std::vector<MemoryRange>& list, const std::vector<MemoryRange>& others) {
  for (const MemoryRange& each : others) {
    const bool known = std::ranges::any_of(list, [&](const MemoryRange& x) {
      return x.shared == each.shared && x.begin <= each.begin && each.end <= x.end;
    });
    if (!known) list.push_back(each);
  }
}

// Whether lanes share a reduction or a scan.
bool combines_lanes(const Node& n) { return kernel::is<kernel::OnReduction>(n.op) && n.over_lanes; }

bool over_lanes(const Node& n) { return n.op == OpCode::kLanes || combines_lanes(n); }

}  // namespace

BlockPlan::BlockPlan(const kernel::Kernel& kernel, const kernel::Ranges& ranges)
    : kernel_(kernel), offsets_(kernel.memories.size()) {
  for (const Node& n : kernel.nodes) {
    if (!over_lanes(n)) continue;
    auto runs = std::make_unique<AccessRuns>(kernel, ranges, n);
    const bool ordered = n.op == OpCode::kScan || (n.op == OpCode::kReduce && !n.commutative);
    const int64_t threads = element_count(kernel.grid) * (element_count(n.extents) / runs->width());
    if (ordered || (runs->has_loops() && threads < kEnoughThreads)) runs->take_one_by_one();
    runs_[&n] = std::move(runs);
  }
  count_threads();
  lay_out(kernel.body, 0);
  for (MemoryId m = 0; m < kernel.memories.size(); ++m) {
    if (kernel.memory(m).space != Space::kPrivate) continue;
    const Memory& memory = kernel.memory(m);
    int64_t elements = instances(m);
    for (size_t d = memory.lane_rank; d < memory.dims.size(); ++d) elements *= memory.dims[d];
    private_bytes_ += elements * static_cast<int64_t>(storage_bytes(memory.type));
  }
}

// As many threads as the widest loop can use.
void BlockPlan::count_threads() {
  int64_t most = kWarp;
  for (const auto& [node, runs] : runs_) {
    most = std::max(most, element_count(node->extents) / runs->width());
  }
  const int64_t warps = (std::min<int64_t>(most, kMostThreads) + kWarp - 1) / kWarp;
  threads_ = static_cast<uint32_t>(warps) * kWarp;
}

// Lays out shared memory as a stack: the body's declarations follow those of the enclosing blocks,
// and the temporary memory of its statements follows the declarations.
void BlockPlan::lay_out(BlockId body, int64_t from) {
  for (const NodeId id : kernel_.block(body).nodes) {
    const Node& n = kernel_.node(id);
    if (n.op == OpCode::kScratch) {
      offsets_[n.memories[0]] = from;
      from += align(std::max<int64_t>(kernel_.memory(n.memories[0]).bytes(), 1));
    }
  }
  shared_bytes_ = std::max(shared_bytes_, from);
  for (const NodeId id : kernel_.block(body).nodes) {
    const Node& n = kernel_.node(id);
    if (combines_lanes(n)) {
      partials_[&n] = from;
      shared_bytes_ = std::max(shared_bytes_, partials_place(n).end);
    }
    for (const BlockId inner : n.blocks) lay_out(inner, from);
  }
}

int64_t BlockPlan::instances(MemoryId memory) const {
  const Memory& m = kernel_.memory(memory);
  int64_t lanes = 1;
  for (size_t d = 0; d < m.lane_rank; ++d) lanes *= m.dims[d];
  return std::max<int64_t>((lanes + threads_ - 1) / threads_, 1);
}

MemoryRange BlockPlan::place(MemoryId memory) const {
  const Memory& m = kernel_.memory(memory);
  if (m.space == Space::kScratch) {
    return {true, offsets_[memory], offsets_[memory] + align(std::max<int64_t>(m.bytes(), 1))};
  }
  while (kernel_.memory(memory).over != kNone) memory = kernel_.memory(memory).over;
  const auto number = static_cast<int64_t>(memory);
  return {false, number, number + 1};
}

MemoryRange BlockPlan::partials_place(const Node& n) const {
  const int64_t begin = partials_.at(&n);
  const auto warps = static_cast<int64_t>(threads_ / kWarp);
  // A single warp needs none for a reduction.
  const int64_t bytes =
      warps > 1 || n.op == OpCode::kScan ? warps * static_cast<int64_t>(n.results.size()) : 0;
  return {true, begin, begin + align(bytes * kPartialBytes)};
}

AccessSummary BlockPlan::touched(const Node& n) const {
  AccessSummary list;
  add(n, false, list);
  return list;
}

void BlockPlan::add(const Node& n, bool in_lanes, AccessSummary& touched) const {
  if (kernel::is<kernel::OnAccess>(n.op) &&
      kernel_.memory(n.memories[0]).space != Space::kPrivate) {
    const std::vector<MemoryRange> places = {place(n.memories[0])};
    if (n.op == OpCode::kLoad) {
      note(touched.reads, places);
    } else {
      note(in_lanes ? touched.writes : touched.first_writes, places);
    }
  }
  if (combines_lanes(n)) {
    note(touched.reads, {partials_place(n)});
    note(touched.writes, {partials_place(n)});
  }
  for (const BlockId block : n.blocks) {
    for (const NodeId inner : kernel_.block(block).nodes) {
      add(kernel_.node(inner), in_lanes || over_lanes(n), touched);
    }
  }
}

bool conflict(const AccessSummary& before, const AccessSummary& next) {
  const auto meets = [&](const std::vector<MemoryRange>& places) {
    return overlap(places, before.writes) || overlap(places, before.reads);
  };
  return overlap(next.reads, before.writes) || overlap(next.reads, before.first_writes) ||
         meets(next.writes) || overlap(next.writes, before.first_writes) ||
         meets(next.first_writes);
}

void AccessSummary::add(const AccessSummary& other) {
  note(reads, other.reads);
  note(writes, other.writes);
  note(first_writes, other.first_writes);
}

}  // namespace tenon::gpu
