// The number of devices of a backend that can have any number of them.
#pragma once

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/base/status.h"

namespace tenon::backend {

/// The value of the environment variable, from 1 to 4096; by default 1. Errors: any other value.
inline Result<size_t> device_count(const char* variable) {
  const char* const set = std::getenv(variable);
  if (set == nullptr) return 1;
  constexpr size_t kMost = 4096;
  const char* const end = set + std::strlen(set);
  size_t count = 0;
  const auto read = std::from_chars(set, end, count);
  if (read.ec == std::errc() && read.ptr == end && count >= 1 && count <= kMost) return count;
  return invalid_argument("{} is '{}', expected a number of 1 to {}", variable, set, kMost);
}

}  // namespace tenon::backend
