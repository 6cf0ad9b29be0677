// Durations to wait for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace tenon {

/// `nanoseconds`, limited to a duration so long that nobody sees its end. The clock's time plus
/// that duration is still representable; a greater duration might wrap around into the past.
inline std::chrono::nanoseconds waiting_time(int64_t nanoseconds) {
  return std::chrono::nanoseconds(std::min(nanoseconds, std::numeric_limits<int64_t>::max() / 2));
}

}  // namespace tenon
