#include "core/kernel/verify/memory_rules.h"

#include <algorithm>
#include <set>

namespace tenon::kernel {
namespace {

constexpr int64_t kMostScratchBytes = int64_t{1} << 31;
constexpr int64_t kMostBufferBytes = int64_t{1} << 50;

}  // namespace

// --- Declarations

// Checks the bytes between the first element and the last, and the product of the dimensions.
bool MemoryRules::fits(const Memory& m, int64_t most) {
  const auto width = static_cast<int64_t>(storage_bytes(m.type));
  const Result<int64_t> count = checked_element_count(m.dims, width);
  bool good = count.has_value() && *count <= most / width;
  __int128 last = 0;
  for (size_t d = 0; good && d < m.strides.size(); ++d) {
    good = m.strides[d] >= 0;
    last += static_cast<__int128>(std::max<int64_t>(m.dims[d] - 1, 0)) * m.strides[d];
    good = good && last < most / width;
  }
  return good || fail_as(KernelRule::kK0, ErrorCode::kResourceExhausted,
                         fmt::format("%{} takes more than {} bytes, or has a negative stride",
                                     m.name, most));
}

bool MemoryRules::buffer(MemoryId id) {
  const Memory& m = kernel_.memory(id);
  if (is_complex(m.type)) return fail(KernelRule::kK0, "%{} is of {}", m.name, name_of(m.type));
  if (!m.strides.empty() && m.strides.size() != m.dims.size()) {
    return fail(KernelRule::kK0, "%{} has {} strides for {} dimensions", m.name, m.strides.size(),
                m.dims.size());
  }
  if (!fits(m, kMostBufferBytes)) return false;
  if (m.packed && bit_width(m.type) != 2 && bit_width(m.type) != 4) {
    return fail(KernelRule::kK9, "%{} is packed, but {} does not share bytes evenly", m.name,
                name_of(m.type));
  }
  if (m.packed && m.access != Access::kIn) {
    return fail(KernelRule::kK9,
                "%{} is packed and can only be 'in'; declare a buffer that is stored to as bytes",
                m.name);
  }
  return m.over == kNone || may_be_over(id);
}

bool MemoryRules::may_be_over(MemoryId id) {
  const Memory& m = kernel_.memory(id);
  if (m.over >= kernel_.buffer_count || m.over == id)
    return fail(KernelRule::kK4, "the buffer after 'over' does not exist, or is the buffer itself");
  const Memory& under = kernel_.memory(m.over);
  if (m.access != Access::kOut || under.access != Access::kIn) {
    return fail(KernelRule::kK4, "%{} over %{}: an 'out' buffer may take the memory of an 'in' one",
                m.name, under.name);
  }
  if (m.dims != under.dims || m.resolved_strides() != under.resolved_strides() || under.packed ||
      storage_bytes(m.type) != storage_bytes(under.type)) {
    return fail(KernelRule::kK4, "%{} over %{}: the elements have different positions", m.name,
                under.name);
  }
  return true;
}

bool MemoryRules::declaration(const Node& node) {
  const Memory& m = kernel_.memory(node.memories[0]);
  if (is_complex(m.type)) return fail(KernelRule::kK0, "%{} is of {}", m.name, name_of(m.type));
  if (m.packed) return fail(KernelRule::kK9, "%{}: only buffers are packed", m.name);
  if (!fits(m, kMostScratchBytes)) return false;
  scratch_bytes_ += m.span() * static_cast<int64_t>(storage_bytes(m.type));
  if (scratch_bytes_ > kMostScratchBytes) {
    return fail_as(
        KernelRule::kK0, ErrorCode::kResourceExhausted,
        fmt::format("scratch and private memory take more than {} bytes", kMostScratchBytes));
  }
  if ((node.op == OpCode::kPrivate) != (m.lane_rank > 0) || m.lane_rank > m.dims.size()) {
    return fail(KernelRule::kK0, "lanes are the leading dimensions of private memory");
  }
  return true;
}

// --- Loads and stores

bool MemoryRules::access(const Node& node, const BlockContext& context) {
  const Memory& m = kernel_.memory(node.memories[0]);
  const size_t first = node.op == OpCode::kLoad ? 0 : 1;
  if (!indices(m, node.operands, first, m.dims.size())) return false;
  if (node.type != m.type || (first == 0 && type_of(node.results[0]) != m.type)) {
    return fail(KernelRule::kK0, "{} of {}, but %{} holds {}", op_name(node.op), name_of(node.type),
                m.name, name_of(m.type));
  }
  if (first == 1 && type_of(node.operands[0]) != m.type) {
    return fail(KernelRule::kK0, "a {} is stored to %{}, which holds {}",
                name_of(type_of(node.operands[0])), m.name, name_of(m.type));
  }
  if (m.space == Space::kPrivate && !is_own_part(node, m, first, context)) return false;
  if (node.op == OpCode::kLoad) return load(node, m, context);
  if (!writable(m)) return false;
  return node.op == OpCode::kAtomic ? atomic(m) : stores_race_free(node, m, first, context);
}

bool MemoryRules::load(const Node& node, const Memory& m, const BlockContext& context) {
  if (!readable(m)) return false;
  Dependence depends = dependences_.of(node.operands);
  if (m.space == Space::kPrivate) depends |= context.varying;
  // A stored value may depend on anything.
  if (m.space == Space::kScratch || m.access == Access::kInOut) depends = kAll;
  dependences_.set(node.results[0], depends);
  return true;
}

bool MemoryRules::atomic(const Memory& m) {
  if (!is_integer(m.type)) {
    return fail(KernelRule::kK6, "an atomic on {}: the order of its combinations would change bits",
                name_of(m.type));
  }
  if (m.access == Access::kOut && m.space == Space::kBuffer) {
    return fail(KernelRule::kK2, "an atomic on %{}, which is 'out': its content is undefined",
                m.name);
  }
  return true;
}

bool MemoryRules::indices(const Memory& m, const std::vector<ValueId>& operands, size_t first,
                          size_t rank) {
  if (operands.size() < first + rank) {
    return fail(KernelRule::kK0, "%{} has {} indices, {} given", m.name, rank,
                operands.size() - first);
  }
  for (size_t i = 0; i < rank; ++i) {
    const ElementType type = type_of(operands[first + i]);
    if (type != kernel_.index_type) {
      return fail(KernelRule::kK10, "an index of %{} is {}, the kernel's index type is {}", m.name,
                  name_of(type), name_of(kernel_.index_type));
    }
  }
  return true;
}

bool MemoryRules::readable(const Memory& m) {
  if (m.space != Space::kBuffer || m.access != Access::kOut) return true;
  return fail(KernelRule::kK2, "%{} is 'out' and loaded from: its content is undefined", m.name);
}

bool MemoryRules::writable(const Memory& m) {
  if (m.space != Space::kBuffer || m.access != Access::kIn) return true;
  return fail(KernelRule::kK0, "%{} is 'in' and stored to", m.name);
}

bool MemoryRules::is_own_part(const Node& node, const Memory& m, size_t first,
                              const BlockContext& context) {
  const Node* lanes = context.lanes;
  bool own =
      lanes != nullptr && lanes->op == OpCode::kLanes && lanes->extents.size() == m.lane_rank;
  for (size_t d = 0; own && d < m.lane_rank; ++d) {
    const ValueId index = node.operands[first + d];
    const bool only_one =
        m.dims[d] == 1 && kernel_.is_constant(index) && kernel_.value(index).bits == 0;
    own = lanes->extents[d] == m.dims[d] &&
          (only_one || index == kernel_.block(lanes->blocks[0]).arguments[d]);
  }
  return own || fail(KernelRule::kK3,
                     "%{} is private: its first {} indices are the variables of a lanes loop "
                     "of its extents, in order",
                     m.name, m.lane_rank);
}

// Rejects a store to the same element by every iteration of a loop with several iterations.
bool MemoryRules::stores_race_free(const Node& node, const Memory& m, size_t first,
                                   const BlockContext& context) {
  if (context.conditional) return true;
  const Dependence depends = dependences_.of(std::span(node.operands).subspan(first));
  Dependence concerned = context.varying;
  // Scratch belongs to one workgroup, so the grid's variables do not matter.
  if (m.space != Space::kBuffer) concerned &= ~context.grid;
  if (m.space == Space::kPrivate) concerned = 0;
  if ((concerned & ~depends) == 0) return true;
  return fail(KernelRule::kK3, "every iteration of {} stores to the same elements of %{}",
              (concerned & ~depends & context.grid) != 0 ? "the grid" : "the lanes loop", m.name);
}

// --- Tiles

bool MemoryRules::copy(const Node& node, const BlockContext& context) {
  const Memory& destination = kernel_.memory(node.memories[0]);
  const Memory& source = kernel_.memory(node.memories[1]);
  if (destination.type != source.type || node.type != source.type) {
    return fail(KernelRule::kK0, "copy from {} to {}", name_of(source.type),
                name_of(destination.type));
  }
  if (destination.space == Space::kPrivate || source.space == Space::kPrivate) {
    return fail(KernelRule::kK3, "copy does not touch private memory");
  }
  if (!writable(destination) || !readable(source)) return false;
  const size_t starts = destination.dims.size() + source.dims.size();
  if (node.by.size() != 2 * node.extents.size() ||
      node.operands.size() != starts + (node.has_pad ? 1 : 0)) {
    return fail(KernelRule::kK0,
                "copy names a dimension of each memory for each dimension of the box");
  }
  if (!box_runs_along(node)) return false;
  if (node.has_pad && type_of(node.operands.back()) != source.type) {
    return fail(KernelRule::kK0, "the padding is {}, the elements are {}",
                name_of(type_of(node.operands.back())), name_of(source.type));
  }
  return countable(node.extents, kMostIterations, "the box of copy") &&
         indices(destination, node.operands, 0, starts) && copies_race_free(node, context);
}

bool MemoryRules::box_runs_along(const Node& node) {
  const size_t box = node.extents.size();
  for (size_t side = 0; side < 2; ++side) {
    const Memory& m = kernel_.memory(node.memories[side]);
    std::set<uint32_t> seen;
    for (size_t d = 0; d < box; ++d) {
      const uint32_t by = node.by[side * box + d];
      if (by >= m.dims.size() || !seen.insert(by).second) {
        return fail(KernelRule::kK0, "by({}): no dimension of %{}, or named twice", by, m.name);
      }
    }
  }
  return true;
}

// Rejects a copy to the same box by every workgroup, as for a store.
bool MemoryRules::copies_race_free(const Node& node, const BlockContext& context) {
  const Memory& destination = kernel_.memory(node.memories[0]);
  if (destination.space != Space::kBuffer || context.conditional) return true;
  const Dependence depends =
      dependences_.of(std::span(node.operands).first(destination.dims.size()));
  if ((context.varying & context.grid & ~depends) == 0) return true;
  return fail(KernelRule::kK3, "every iteration of the grid copies to the same elements of %{}",
              destination.name);
}

bool MemoryRules::contract(const Node& node) {
  size_t first = 0;
  for (size_t i = 0; i < 3; ++i) {
    const Memory& m = kernel_.memory(node.memories[i]);
    const bool accumulator = m.space == Space::kPrivate;
    if (accumulator && (i != 0 || m.lane_rank != 2 || m.dims.size() != 4)) {
      return fail(KernelRule::kK0,
                  "a private tile is the accumulator, of 4 dimensions per lanes 2");
    }
    if (m.dims.size() < 2)
      return fail(KernelRule::kK0, "tile %{} has fewer than 2 dimensions", m.name);
    if (!contains(kNumbers, m.type)) return fail(KernelRule::kK0, "a tile of {}", name_of(m.type));
    if (!readable(m)) return false;
    const size_t starts = accumulator ? 2 : m.dims.size();
    if (!indices(m, node.operands, first, starts)) return false;
    first += starts;
  }
  if (!countable({node.extents[0], node.extents[1]}, kMostIterations, "the box of contract")) {
    return false;
  }
  const Memory& c = kernel_.memory(node.memories[0]);
  if (c.space == Space::kBuffer)
    return fail(KernelRule::kK0, "contract accumulates in scratch or private tiles");
  if (is_float(c.type) != is_float(kernel_.memory(node.memories[1]).type) ||
      is_float(c.type) != is_float(kernel_.memory(node.memories[2]).type)) {
    return fail(KernelRule::kK0, "contract of integers gives integers, of floats floats");
  }
  return true;
}

}  // namespace tenon::kernel
