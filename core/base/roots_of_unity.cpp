#include "core/base/roots_of_unity.h"

#include <cmath>
#include <utility>

namespace tenon {

// Only angles in the first octant are computed: in the others, cos and sin are swapped and change
// sign exactly.
std::complex<long double> root_of_unity(int64_t k, int64_t n) {
  constexpr long double kTwoPi = 6.28318530717958647692528676655900577L;
  using Wide = __int128;
  const bool lower = 2 * Wide{k} > n;   // The lower half: conjugates.
  Wide part = lower ? n - k : k;        // A part of n, at most half.
  const bool left = 4 * part > n;       // The second quadrant mirrors the first.
  if (left) part = Wide{n} - 2 * part;  // Twice the distance to half a turn.
  Wide whole = left ? 2 * Wide{n} : n;
  const bool steep = 8 * part > whole;  // The second octant mirrors the first.
  if (steep) {
    part = whole - 4 * part;
    whole *= 4;
  }
  const long double angle =
      kTwoPi * (static_cast<long double>(part) / static_cast<long double>(whole));
  long double re = std::cos(angle);
  long double im = std::sin(angle);
  if (steep) std::swap(re, im);
  if (8 * part == whole) re = im = std::sqrt(0.5L);
  return {left ? -re : re, lower ? -im : im};
}

}  // namespace tenon
