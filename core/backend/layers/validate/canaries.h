// Canaries on either side of an allocation, and poison within it. Of validate_device.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "core/backend/layers/paint.h"
#include "core/backend/layers/validate/validate_device.h"

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
      : of(guarded), seen(static_cast<size_t>(2 * guarded.margin), kNotRead) {}

  /// Queues copies that read them.
  Status read(Device& device, uint32_t queue) {
    TENON_TRY(device.copy(queue, MemoryAddress::of_host(seen.data()), {of.memory, 0, nullptr},
                          of.margin));
    return device.copy(queue, MemoryAddress::of_host(seen.data() + of.margin),
                       {of.memory, of.margin + of.bytes, nullptr}, of.margin);
  }
  /// Whether the copies of read() have not come, or whether nothing painted the canaries.
  bool is_unread() const { return all_are(kNotRead); }
  bool is_unpainted() const { return std::ranges::find(seen, kCanary) == seen.end(); }
  /// Whether those copies come a little later.
  Status verdict_of_unread() const {
    for (int turn = 0; turn < 40 && is_unread(); ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return is_unread()
               ? rule_violation("B20", "copies to the host, from memory {}, wrote nothing",
                                of.memory)
               : rule_violation("B23",
                                "an event was done before the work: copies from memory {} came "
                                "later",
                                of.memory);
  }
  /// Where something was written, counted from the allocation's begin.
  std::optional<int64_t> written_at() const {
    const auto changed = std::ranges::find_if(seen, [](std::byte b) { return b != kCanary; });
    if (changed == seen.end()) return {};
    const int64_t at = changed - seen.begin();
    return at < of.margin ? at - of.margin : at - of.margin + of.bytes;
  }

 private:
  static constexpr std::byte kNotRead{0x3C};
  bool all_are(std::byte value) const {
    return std::ranges::all_of(seen, [value](std::byte b) { return b == value; });
  }
};

/// OK, or what the canaries of some memories show.
inline Status check_canaries(const std::vector<Canaries>& canaries) {
  for (const Canaries& each : canaries) {
    const std::optional<int64_t> at = each.written_at();
    if (!at) continue;
    if (each.is_unread()) return each.verdict_of_unread();
    if (each.is_unpainted()) {
      return rule_violation("B20", "copies or fills that paint memory {} wrote nothing",
                            each.of.memory);
    }
    return rule_violation("B21", "something was written at {} of memory {}, which has {} bytes: {}",
                          *at, each.of.memory, each.of.bytes,
                          *at < 0 ? fmt::format("{} bytes before its begin", -*at)
                                  : fmt::format("{} bytes behind its end", *at - each.of.bytes));
  }
  return {};
}

}  // namespace tenon::backend
