// sin, cos and tan: reduction by pi / 2, exactly enough for every number of the format.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "core/kernel/math/functions.h"

namespace tenon::kernel::math {

/// x = quadrant pi / 2 + high + low, where |high| is at most slightly more than pi / 4; only the
/// last two bits of the quadrant are correct.
template <class R>
struct Angle {
  Int<R> quadrant;
  R high, low;
};

/// reduce_small() is accurate enough up to this bound.
template <class F>
inline constexpr F kSmallAngle = sizeof(F) == 4 ? F(0x1p17) : F(0x1p39);

/// pi / 2 in three parts (Cody and Waite 1980): with fma the first difference is exact.
template <class R>
Angle<R> reduce_small(R x) {
  using K = Constants<R>;
  const auto [n, quadrant] = round_to_int(x * K::kTwoOverPi);
  const R first = fma(-n, like(x, K::kPiOver2A), x);
  const R product = n * K::kPiOver2B;
  const R product_low = fma(n, like(x, K::kPiOver2B), -product);
  const Sum<R> second = two_sum(first, -product);
  const Sum<R> sum =
      fast_two_sum(second.high, fma(-n, like(x, K::kPiOver2C), second.low - product_low));
  return {quadrant, sum.high, sum.low};
}

// --- Large angles (Payne and Hanek 1983): the relevant bits of 2 / pi, times the significand

/// The number of words of the product that are kept: two bits of quadrant, then at least 60 more
/// than the maximum number of leading zeros for any number of the format.
template <class F>
inline constexpr size_t kAngleWords = sizeof(F) == 4 ? 3 : 6;

/// `count` words of (0, 2 / pi) from bit `skip` on, most significant first.
template <class R>
std::vector<Word<R>> bits_of_two_over_pi(R x, Word<R> skip, size_t count) {
  constexpr size_t kTable = sizeof(Format<R>) == 4 ? 9 : 40;
  std::vector<Word<R>> words = {word_like(x, 0)};
  for (size_t i = 0; i + 1 < kTable; ++i) words.push_back(word_like(x, kTwoOverPiWords[i]));
  // By whole words, largest steps first.
  for (size_t step = 32; step != 0; step /= 2) {
    const auto bit = static_cast<uint32_t>(step * 32);
    const Bool<R> moves = word_like(x, 0) < (skip & word_like(x, bit));
    const size_t needed = std::min(words.size(), count + step);
    std::vector<Word<R>> next;
    for (size_t i = 0; i < needed; ++i) {
      const bool inside = i + step < words.size();
      next.push_back(inside ? select(moves, words[i + step], words[i]) : words[i]);
    }
    words = std::move(next);
  }
  const Word<R> shift = skip & word_like(x, 31);
  const Word<R> rest = word_like(x, 32) + (shift ^ word_like(x, ~uint32_t{0})) + word_like(x, 1);
  std::vector<Word<R>> aligned;
  for (size_t i = 0; i < count; ++i) {
    aligned.push_back((words[i] << shift) | (words[i + 1] >> rest));
  }
  return aligned;
}

/// The lowest words of x y, as many as `y` has; all least significant first.
template <class R>
std::vector<Word<R>> low_product(R as, const std::vector<Word<R>>& x,
                                 const std::vector<Word<R>>& y) {
  const auto one_if = [&](Bool<R> p) { return select(p, word_like(as, 1), word_like(as, 0)); };
  std::vector<Word<R>> product(y.size(), word_like(as, 0));
  for (size_t i = 0; i < x.size(); ++i) {
    Word<R> carry = word_like(as, 0);
    for (size_t j = 0; i + j < y.size(); ++j) {
      const Word<R> low = x[i] * y[j];
      const Word<R> sum = product[i + j] + low;
      const Word<R> with_carry = sum + carry;
      const Word<R> carries = one_if(sum < low) + one_if(with_carry < carry);
      carry = multiply_high(x[i], y[j]) + carries;
      product[i + j] = with_carry;
    }
  }
  return product;
}

/// The fraction with the given words, most significant first, in two parts.
template <class R>
Sum<R> fraction_in_two(R as, const std::vector<Word<R>>& words) {
  using F = Format<R>;
  Sum<R> sum = {like(as, 0), like(as, 0)};
  F weight = 1;
  const auto add = [&](Word<R> part, F unit) {
    const Sum<R> next = fast_two_sum(sum.high, real_of(as, part) * unit);
    sum = {next.high, sum.low + next.low};
  };
  for (const Word<R>& word : words) {
    weight *= F(0x1p-32);
    if (sizeof(F) == 8) {
      add(word, weight);
    } else {  // Halves of a word are exact.
      add(word >> word_like(as, 16), weight * F(0x1p16));
      add(word & word_like(as, 0xFFFF), weight);
    }
  }
  return sum;
}

/// For finite x of at least kSmallAngle.
template <class R>
Angle<R> reduce_great(R x) {
  using F = Format<R>;
  using K = Constants<R>;
  constexpr int kBits = kMantissaBits<F>;
  constexpr size_t kWords = kAngleWords<F>;
  const Int<R> one = int_like(x, 1);
  const Int<R> pattern = bits(x);
  // x = significand 2^exponent; bits of 2 / pi that give multiples of 4 are skipped.
  const Int<R> exponent = (pattern >> kBits) - int_like(x, kBias<F> + kBits);
  const Int<R> significand = (pattern & ((one << kBits) - one)) | (one << kBits);
  std::vector<Word<R>> factor;
  for (int i = 0; i < static_cast<int>(sizeof(F) / 4); ++i)
    factor.push_back(word_of(significand, i));
  const Word<R> skip = word_of(exponent + int_like(x, 30), 0);
  std::vector<Word<R>> window = bits_of_two_over_pi(x, skip, kWords);
  std::vector<Word<R>> product =
      low_product(x, factor, std::vector<Word<R>>(window.rbegin(), window.rend()));
  const Word<R> quadrant = product[kWords - 1] >> word_like(x, 30);
  // The fraction after it, to the nearest quadrant; the complement equals its negation except for
  // one bit.
  const Word<R> two = word_like(x, 2);
  std::vector<Word<R>> fraction;
  for (size_t i = kWords; i-- > 0;) {
    const Word<R> below = i == 0 ? word_like(x, 0) : product[i - 1] >> word_like(x, 30);
    fraction.push_back((product[i] << two) | below);
  }
  const Bool<R> up = word_like(x, 0x7FFFFFFF) < fraction[0];
  const Word<R> flip = select(up, word_like(x, ~uint32_t{0}), word_like(x, 0));
  for (Word<R>& word : fraction) word = word ^ flip;
  const Sum<R> f = fraction_in_two(x, fraction);
  const R high = f.high * K::kPiOver2A;
  const R low = fma(f.high, like(x, K::kPiOver2A), -high) +
                fma(f.high, like(x, K::kPiOver2B), f.low * K::kPiOver2A);
  const Sum<R> sum = fast_two_sum(high, low);
  return {int_of(x, quadrant) + select(up, one, int_like(x, 0)), select(up, -sum.high, sum.high),
          select(up, -sum.low, sum.low)};
}

/// For |x|; infinities and NaN give NaN.
template <class R>
Angle<R> reduce_angle(R x) {
  const auto as_tuple = [](const Angle<R>& a) {
    return std::make_tuple(a.quadrant, a.high, a.low);
  };
  const R finite = x - x + x;
  const auto [quadrant, high, low] = if_else(
      finite < kSmallAngle<Format<R>>, [&] { return as_tuple(reduce_small(finite)); },
      [&] { return as_tuple(reduce_great(finite)); });
  const R none = finite - finite;  // NaN if x is not finite.
  return {quadrant, high + none, low};
}

// --- Near zero

template <class R>
R sin_near_zero(R high, R low) {
  const R z = high * high;
  const R tail = fma(z * Format<R>(-0.5), low, low);
  return high + fma(z * high, polynomial(z, Constants<R>::kSin), tail);
}
template <class R>
R cos_near_zero(R high, R low) {
  using F = Format<R>;
  const R z = high * high;
  const R half = z * F(0.5);
  const R w = like(high, 1) - half;
  const R lost = (like(high, 1) - w) - half;
  return w + (lost + fma(z * z, polynomial(z, Constants<R>::kCos), -(high * low)));
}

template <class R>
Bool<R> has_bit(R as, Int<R> x, int bit) {
  return negate((x & int_like(as, bit)) == int_like(as, 0));
}

template <class R>
R sin(R x) {
  const Angle<R> a = reduce_angle(abs(x));
  const R value =
      select(has_bit(x, a.quadrant, 1), cos_near_zero(a.high, a.low), sin_near_zero(a.high, a.low));
  const R upper = select(has_bit(x, a.quadrant, 2), -value, value);
  return from_bits(bits(upper) ^ sign_bit_of(x));
}

template <class R>
R cos(R x) {
  const Angle<R> a = reduce_angle(abs(x));
  const R value =
      select(has_bit(x, a.quadrant, 1), sin_near_zero(a.high, a.low), cos_near_zero(a.high, a.low));
  return select(has_bit(x, a.quadrant + int_like(x, 1), 2), -value, value);
}

template <class R>
R tan(R x) {
  const Angle<R> a = reduce_angle(abs(x));
  const R s = sin_near_zero(a.high, a.low);
  const R c = cos_near_zero(a.high, a.low);
  const Bool<R> turned = has_bit(x, a.quadrant, 1);
  const R value = select(turned, -c, s) / select(turned, s, c);
  return from_bits(bits(value) ^ sign_bit_of(x));
}

}  // namespace tenon::kernel::math
