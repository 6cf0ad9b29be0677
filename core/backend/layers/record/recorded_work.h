// Work of a queue that is recorded, and the memory that its values are read back to.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "core/backend/layers/loaded_kernel.h"
#include "core/backend/layers/record/recording.h"

namespace tenon::backend {

/// Work whose outcome is to be written once it is done.
struct RecordedWork {
  struct Output {
    uint32_t buffer = 0;
    const std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  recorded::Number entry = 0;
  std::vector<Output> outputs;
  std::vector<std::vector<std::byte>> storage;  // Memory of outputs that the layer reads back.

  int64_t held() const {
    int64_t bytes = 0;
    for (const auto& each : storage) bytes += static_cast<int64_t>(each.size());
    return bytes;
  }
};

inline int64_t written_bytes(const LoadedKernel& kernel) {
  int64_t bytes = 0;
  for (const BufferUse& use : kernel.buffers) bytes += use.writes ? use.bytes : 0;
  return bytes;
}

/// Adds memory for the buffers that a launch writes. If the host lacks memory, the launch is
/// recorded without values.
inline void add_outputs(const LoadedKernel& kernel, RecordedWork& work) {
  try {
    for (uint32_t i = 0; i < kernel.buffers.size(); ++i) {
      const BufferUse& use = kernel.buffers[i];
      if (!use.writes || use.bytes == 0) continue;
      auto& memory = work.storage.emplace_back(static_cast<size_t>(use.bytes));
      work.outputs.push_back({i, memory.data(), use.bytes});
    }
  } catch (const std::bad_alloc&) {
    work.outputs.clear();
    work.storage.clear();
  }
}

}  // namespace tenon::backend
