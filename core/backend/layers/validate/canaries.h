// Canaries on either side of an allocation, and poison within it. Of validate_device.cpp.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/backend/layers/paint.h"

namespace tenon::backend {

inline constexpr std::byte kCanary{0xCA};
inline constexpr std::byte kPoison{0xA5};

/// Bytes of the margin on one side, in memory of that space; memory behind it stays aligned.
inline int64_t margin_of(const SpaceInfo& space) {
  constexpr int64_t kCanaryBytes = 256;
  return std::max(kCanaryBytes, space.alignment);
}

/// Memory of `bytes` between two margins.
struct Guarded {
  MemoryHandle memory = 0;
  int64_t bytes = 0;
  int64_t margin = 0;
};

/// Queues work that writes canaries and poison.
inline Status paint_guarded(Device& device, uint32_t queue, const Guarded& guarded) {
  const auto write = [&](int64_t from, int64_t bytes, std::byte value) {
    return paint(device, queue, {guarded.memory, from, nullptr}, bytes, value);
  };
  TENON_TRY(write(0, guarded.margin, kCanary));
  TENON_TRY(write(guarded.margin, guarded.bytes, kPoison));
  return write(guarded.margin + guarded.bytes, guarded.margin, kCanary);
}

/// Both canaries, as read back by queued copies.
struct Canaries {
  Guarded of;
  std::vector<std::byte> seen;

  explicit Canaries(const Guarded& guarded)
      : of(guarded), seen(static_cast<size_t>(2 * guarded.margin)) {}

  /// Queues copies that read them.
  Status read(Device& device, uint32_t queue) {
    TENON_TRY(device.copy(queue, MemoryAddress::of_host(seen.data()), {of.memory, 0, nullptr},
                          of.margin));
    return device.copy(queue, MemoryAddress::of_host(seen.data() + of.margin),
                       {of.memory, of.margin + of.bytes, nullptr}, of.margin);
  }
  /// Where something was written, counted from the allocation's begin.
  std::optional<int64_t> written_at() const {
    const auto changed = std::ranges::find_if(seen, [](std::byte b) { return b != kCanary; });
    if (changed == seen.end()) return {};
    const int64_t at = changed - seen.begin();
    return at < of.margin ? at - of.margin : at - of.margin + of.bytes;
  }
};

}  // namespace tenon::backend
