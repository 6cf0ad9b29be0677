// What layers keep of a kernel that was loaded: what its launches read and write.
#pragma once

#include <string>
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

}  // namespace tenon::backend
