// A loaded kernel as layers describe it: the buffers that its launches read and write.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::backend {

struct BufferUse {
  int64_t bytes = 0;
  bool reads = false;
  bool writes = false;
  bool whole = false;             ///< A launch writes all of its bytes, and reads none (K2).
  uint32_t over = kernel::kNone;  ///< kernel::Memory::over
};

struct LoadedKernel {
  std::string name;
  std::vector<BufferUse> buffers;
  size_t scalars = 0;
};

inline LoadedKernel loaded(const kernel::Kernel& kernel) {
  LoadedKernel made;
  made.name = kernel.name;
  made.scalars = kernel.scalars.size();
  for (size_t i = 0; i < kernel.buffer_count; ++i) {
    const kernel::Memory& m = kernel.memories[i];
    const bool is_dense = !m.packed && m.bytes() == element_count(m.dims) *
                                                        static_cast<int64_t>(storage_bytes(m.type));
    made.buffers.push_back(
        {m.bytes(), m.access != kernel::Access::kOut, m.access != kernel::Access::kIn,
         m.access == kernel::Access::kOut && is_dense && m.over == kernel::kNone, m.over});
  }
  return made;
}

inline std::vector<LoadedKernel> loaded(Kernels kernels) {
  std::vector<LoadedKernel> result;
  for (const kernel::Kernel* kernel : kernels) result.push_back(loaded(*kernel));
  return result;
}

/// Whether two ranges of device memory overlap. A place is a (memory, offset).
template <class Place>
bool overlap(const Place& a, int64_t a_bytes, const Place& b, int64_t b_bytes) {
  return a.memory == b.memory && a.memory != 0 && a.offset < b.offset + b_bytes &&
         b.offset < a.offset + a_bytes;
}

/// The first buffer that a launch would write over another one, although the kernel does not
/// declare it (B21, K4), and that other buffer.
template <class Place>
std::optional<std::pair<size_t, size_t>> first_alias(const LoadedKernel& kernel,
                                                     std::span<const Place> places) {
  const std::vector<BufferUse>& buffers = kernel.buffers;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!buffers[i].writes) continue;
    for (size_t k = 0; k < places.size(); ++k) {
      if (i == k || buffers[i].over == k || buffers[k].over == i) continue;
      if (overlap(places[i], buffers[i].bytes, places[k], buffers[k].bytes)) return {{i, k}};
    }
  }
  return {};
}

}  // namespace tenon::backend
