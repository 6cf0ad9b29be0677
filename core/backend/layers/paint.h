// Fills device memory with one byte: by `fill` if the device offers it, else by copies from host
// memory that lives as long as the process, because a copy may read its source at any later time
// (B19).
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::backend {

inline constexpr int64_t kPatternBytes = int64_t{1} << 16;

/// A host buffer filled with `value`.
inline const std::vector<std::byte>& pattern(std::byte value) {
  static auto* mutex = new std::mutex();
  static auto* patterns = new std::map<std::byte, std::vector<std::byte>>();
  const std::lock_guard lock(*mutex);
  return patterns->try_emplace(value, kPatternBytes, value).first->second;
}

/// Queues work that fills `bytes` bytes at `place`, in the device's memory.
inline Status paint(Device& device, uint32_t queue, MemoryAddress place, int64_t bytes,
                    std::byte value) {
  if (bytes <= 0) return {};
  const std::vector<std::byte>& source = pattern(value);
  Status filled = device.fill(queue, place, bytes, std::span(source).first(1));
  if (filled.code() != ErrorCode::kUnimplemented) return filled;
  while (bytes > 0) {
    const int64_t piece = std::min(bytes, kPatternBytes);
    TENON_TRY(device.copy(queue, place, MemoryAddress::of_host(source.data()), piece));
    place.offset += piece;
    bytes -= piece;
  }
  return {};
}

}  // namespace tenon::backend
