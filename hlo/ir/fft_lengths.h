// Lengths of Fourier transforms that lowering takes as they are; others are decomposed.
#pragma once

#include <cstdint>

namespace tenon::hlo {

/// The greatest prime factor that a length may have.
inline constexpr int64_t kMostFftRadix = 13;

/// Whether transforms of length `n`, 1 or more, are made of passes of at most kMostFftRadix points.
constexpr bool is_direct_fft_length(int64_t n) {
  if (n < 1) return false;
  for (int64_t p = 2; p <= kMostFftRadix; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

}  // namespace tenon::hlo
