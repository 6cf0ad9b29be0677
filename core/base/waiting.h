// Times to wait for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace tenon {

/// `nanoseconds`, or so many that nobody sees their end: the time of a clock and as long as this
/// later is still a time, where any greater number might wrap around into the past.
inline std::chrono::nanoseconds waiting_time(int64_t nanoseconds) {
  return std::chrono::nanoseconds(std::min(nanoseconds, std::numeric_limits<int64_t>::max() / 2));
}

}  // namespace tenon
