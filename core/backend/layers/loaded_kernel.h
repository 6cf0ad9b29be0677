// What layers keep of a kernel that was loaded: what its launches read and write.
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
  uint32_t over = kernel::kNone;  ///< kernel::Memory::over
};

struct LoadedKernel {
  std::string name;
  std::vector<BufferUse> buffers;
  size_t scalars = 0;
};

inline std::vector<LoadedKernel> loaded(Kernels kernels) {
  std::vector<LoadedKernel> result;
  for (const kernel::Kernel* kernel : kernels) {
    LoadedKernel& made = result.emplace_back();
    made.name = kernel->name;
    made.scalars = kernel->scalars.size();
    for (size_t i = 0; i < kernel->buffer_count; ++i) {
      const kernel::Memory& m = kernel->memories[i];
      made.buffers.push_back(
          {m.bytes(), m.access != kernel::Access::kOut, m.access != kernel::Access::kIn, m.over});
    }
  }
  return result;
}

/// Two buffers of a launch, the first of them written, that overlap although the kernel does not
/// say so (K4).
inline std::optional<std::pair<size_t, size_t>> overlapping(const LoadedKernel& kernel,
                                                            std::span<const Place> places) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (!kernel.buffers[i].writes) continue;
    for (size_t k = 0; k < places.size(); ++k) {
      const bool apart = places[i].memory != places[k].memory ||
                         places[i].offset + kernel.buffers[i].bytes <= places[k].offset ||
                         places[k].offset + kernel.buffers[k].bytes <= places[i].offset;
      if (i == k || apart || kernel.buffers[i].over == k || kernel.buffers[k].over == i) continue;
      return std::pair(i, k);
    }
  }
  return {};
}

}  // namespace tenon::backend
