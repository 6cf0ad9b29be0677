// How many devices a backend shows that could show any number.
#pragma once

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace tenon::backend {

/// What the environment variable says, of 1 to 4096; 1 if it says nothing of the kind.
inline size_t device_count(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return 1;
  size_t count = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), count);
  return error == std::errc() && *end == 0 && count >= 1 && count <= 4096 ? count : 1;
}

}  // namespace tenon::backend
