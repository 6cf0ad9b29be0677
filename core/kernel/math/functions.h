// The math functions of the kernel IR, one template each, which defines every bit of exp and the
// other functions.
//
// R is a number type as in number.h. All functions use only fma, which rounds once, and the exactly
// rounded operations. Where a condition splits the range, both sides are computed and one is
// selected, except for the reduction of large angles. Bounds and measured errors: docs/numerics.md.
// The methods are those of fdlibm (Ng, 1993) and of Muller et al., Handbook of Floating-Point
// Arithmetic (2018), chapters 10 and 11, with fma throughout.
#pragma once

#include <limits>
#include <tuple>

#include "core/kernel/math/coefficients.h"
#include "core/kernel/math/number.h"

namespace tenon::kernel::math {

template <class R>
using Constants = Coefficients<Format<R>>;
template <class R>
inline constexpr Format<R> kInfinity = std::numeric_limits<Format<R>>::infinity();
template <class R>
inline constexpr Format<R> kNan = std::numeric_limits<Format<R>>::quiet_NaN();

/// A number as the sum of two, |low| at most half a unit of high.
template <class R>
struct Sum {
  R high, low;
};

/// x + y exactly, for |x| >= |y| or x = 0 (Dekker 1971).
template <class R>
Sum<R> fast_two_sum(R x, R y) {
  const R sum = x + y;
  return {sum, y - (sum - x)};
}

/// x + y exactly (Knuth 1969).
template <class R>
Sum<R> two_sum(R x, R y) {
  const R sum = x + y;
  const R part = sum - x;
  return {sum, (x - (sum - part)) + (y - part)};
}

/// Horner's scheme; coefficients from the highest power.
template <class R, size_t N>
R polynomial(R x, const std::array<Format<R>, N>& coefficients) {
  R p = like(x, coefficients[0]);
  for (size_t i = 1; i < N; ++i) p = fma(p, x, like(x, coefficients[i]));
  return p;
}

// --- Parts of a number

template <class R>
Int<R> sign_bit_of(R x) {
  return bits(x) & int_like(x, std::numeric_limits<typename Integer<Format<R>>::Signed>::min());
}
/// `magnitude`, which is not negative, with the sign of `sign`.
template <class R>
R with_sign(R magnitude, R sign) {
  return from_bits(bits(magnitude) | sign_bit_of(sign));
}
template <class R>
Bool<R> is_nan(R x) {
  return x != x;
}

/// 2^n, where n is the exponent of a normal number.
template <class R>
R power_of_two(R as, Int<R> n) {
  return from_bits((n + int_like(as, kBias<Format<R>>)) << kMantissaBits<Format<R>>);
}
/// x 2^n for |n| up to twice the greatest exponent, rounded once for 1 <= |x| < 2.
template <class R>
R scaled(R x, Int<R> n) {
  if (const auto at_once = scaled_at_once(x, n)) return *at_once;
  constexpr int kBits = kMantissaBits<Format<R>>;
  const Int<R> biased = n + int_like(x, 2 * kBias<Format<R>>);
  const Int<R> half = biased >> 1;
  return x * from_bits(half << kBits) * from_bits((biased - half) << kBits);
}

/// x = m 2^exponent with m in [sqrt(1/2), sqrt(2)), for a normal x > 0.
template <class R>
struct ScaledMantissa {
  R m;
  Int<R> exponent;
};
template <class R>
ScaledMantissa<R> split(R x) {
  const Format<R> root_half = static_cast<Format<R>>(0.70710678118654752440);
  const Int<R> pattern = bits(x);
  const Int<R> exponent = (pattern - bits(like(x, root_half))) >> kMantissaBits<Format<R>>;
  return {from_bits(pattern - (exponent << kMantissaBits<Format<R>>)), exponent};
}

/// The same for any x > 0.
template <class R>
ScaledMantissa<R> split_any(R x) {
  constexpr int kShift = kMantissaBits<Format<R>> + 2;
  const Bool<R> tiny = x < std::numeric_limits<Format<R>>::min();
  const auto up = static_cast<Format<R>>(int64_t{1} << kShift);
  const ScaledMantissa<R> s = split(select(tiny, x * up, x));
  return {s.m, s.exponent - select(tiny, int_like(x, kShift), int_like(x, 0))};
}

// --- Exponentials

/// A number rounded to the nearest integer, ties to even, as a float and as an integer.
template <class R>
struct Rounded {
  R real;
  Int<R> integer;
};
/// For |x| < 2^21 (f64: 2^50): in a sum with 3/2 of a power of two, the last bit has weight 1.
template <class R>
Rounded<R> round_to_int(R x) {
  using F = Format<R>;
  constexpr F kMagic = static_cast<F>(int64_t{3} << (kMantissaBits<F> - 1));
  const R sum = x + kMagic;
  return {sum - kMagic, bits(sum) - bits(like(x, kMagic))};
}

/// x = n log 2 + r, |r| <= log 2 / 2.
template <class R>
struct ExpReduction {
  Rounded<R> n;
  R r;
};
template <class R>
ExpReduction<R> reduce_exp(R x) {
  using K = Constants<R>;
  const Rounded<R> n = round_to_int(x * K::kLog2E);
  return {n, fma(-n.real, like(x, K::kLn2Low), fma(-n.real, like(x, K::kLn2High), x))};
}
/// e^r - 1 for |r| <= log 2 / 2.
template <class R>
R expm1_near_zero(R r) {
  return fma(r * r, polynomial(r, Constants<R>::kExp), r);
}
/// For |x| above this bound, e^x is infinite or 0.
template <class F>
inline constexpr F kExpHigh = sizeof(F) == 4 ? 89 : 710;
template <class F>
inline constexpr F kExpLow = sizeof(F) == 4 ? -104 : -746;

template <class R>
ExpReduction<R> reduce_any_exp(R x) {
  using F = Format<R>;
  return reduce_exp(min(max(x, like(x, kExpLow<F>)), like(x, kExpHigh<F>)));
}

/// e^(x + tail), where tail is small compared with x.
template <class R>
R exp_of_sum(R x, R tail) {
  const auto [n, r] = reduce_any_exp(x);
  return scaled(expm1_near_zero(r + tail) + Format<R>(1), n.integer);
}

template <class R>
R exp(R x) {
  const auto [n, r] = reduce_any_exp(x);
  return scaled(expm1_near_zero(r) + Format<R>(1), n.integer);
}

template <class R>
R expm1(R x) {
  using F = Format<R>;
  constexpr F kLow = sizeof(F) == 4 ? -20 : -50;  // From here down the result is -1.
  const R clamped = min(max(x, like(x, kLow)), like(x, kExpHigh<F>));
  const auto [n, r] = reduce_exp(clamped);
  const R near = expm1_near_zero(r);
  // Half of 2^n, which may overflow, times e^r - 1 / 2^n.
  const R half = power_of_two(x, n.integer - int_like(x, 1));
  const R far = fma(half, near, half - F(0.5)) * F(2);
  return select(x == F(0), x, select(n.real == F(0), near, far));
}

template <class R>
R logistic(R x) {
  using F = Format<R>;
  const R e = exp(-abs(x));
  return select(x < F(0), e, like(x, 1)) / (e + F(1));
}

/// E / (E + 2) with E = e^2x - 1, which is as exact near zero as elsewhere.
template <class R>
R tanh(R x) {
  using F = Format<R>;
  constexpr F kOne = sizeof(F) == 4 ? F(9.1) : F(19.1);  // Beyond, the result is 1.
  const R least = min(abs(x), like(x, kOne));
  const auto [n, r] = reduce_exp(least + least);
  const R power = power_of_two(x, n.integer);
  const R e = fma(power, expm1_near_zero(r), power - F(1));
  return with_sign(e / (e + F(2)), x);
}

// --- The error function and its complement

/// Far from zero the difference 1 - erfc(x) needs erfc to few bits, so that the eighth power of a
/// polynomial does.
template <class R>
R erf(R x) {
  using F = Format<R>;
  using K = Constants<R>;
  constexpr F kNear = sizeof(F) == 4 ? F(0.9) : F(1);
  constexpr F kOne = sizeof(F) == 4 ? F(3.95) : F(5.95);  // Beyond, the result is 1.
  const R a = abs(x);
  const R near = fma(polynomial(x * x, K::kErf), a, a);
  const R root = polynomial(select(a > kOne, like(x, kOne), a), K::kErfFar);
  const R square = root * root;
  const R fourth = square * square;
  const R far = like(x, 1) - fourth * fourth;
  return with_sign(select(a > kNear, far, near), x);
}

/// e^(-x^2) times a rational function, the form of Shepherd and Laframboise (1981), for x >= 0.
template <class R>
R erfc(R x) {
  using F = Format<R>;
  using K = Constants<R>;
  constexpr F kZero = sizeof(F) == 4 ? F(10.1) : F(27.3);  // Beyond, the result is 0.
  constexpr F kCentre = 3;
  const R whole = abs(x);
  const R a = select(whole > kZero, like(x, kZero), whole);
  // t = (a - 3) / (a + 3), with what the rounding of both sums took away.
  const R inverse = like(x, 1) / (a + kCentre);
  const R quotient = (a - kCentre) * inverse;
  const R rest = fma(-quotient, a, fma(quotient + F(1), like(x, -kCentre), a));
  const R t = fma(inverse, rest, quotient);
  const R factor = inverse * polynomial(t, K::kErfc);
  // The square in two parts: the exponential would multiply its error by its size.
  const R square = a * a;
  const R square_low = fma(a, a, -square);
  const ExpReduction<R> reduced = reduce_exp(-square);
  const R far =
      scaled(fma(factor, expm1_near_zero(reduced.r - square_low), factor), reduced.n.integer);
  return select(x < F(0), like(x, 2) - far, far);
}

// --- Logarithms

/// log(1 + f) + exponent log 2 + tail, where split() gave 1 + f.
template <class R>
R log_of_split(R f, R exponent, R tail) {
  using F = Format<R>;
  using K = Constants<R>;
  const R half_square = f * f * F(0.5);
  const R s = f / (f + F(2));
  const R z = s * s;
  const R rest = s * (half_square + z * polynomial(z, K::kLog));
  const R low = rest + fma(exponent, like(f, K::kLn2Low), tail);
  return exponent * K::kLn2High - ((half_square - low) - f);
}

template <class R>
R log(R x) {
  using F = Format<R>;
  const ScaledMantissa<R> s = split_any(x);
  const R inside = log_of_split(s.m - F(1), to_real(s.exponent), like(x, 0));
  const R above = select(x < kInfinity<R>, inside, x);
  return select(x == F(0), like(x, -kInfinity<R>), select(x < F(0), like(x, kNan<R>), above));
}

template <class R>
R log1p(R x) {
  using F = Format<R>;
  // 1 + x rounded, and its rounding error.
  const R u = x + F(1);
  const R lost = select(x < F(1), x - (u - F(1)), like(x, 1) - (u - x)) / u;
  const ScaledMantissa<R> s = split(u);
  const Bool<R> near = both(x > F(-0.29), x < F(0.41));
  const R zero = like(x, 0);
  const R inside = log_of_split(select(near, x, s.m - F(1)),
                                select(near, zero, to_real(s.exponent)), select(near, zero, lost));
  const R above = select(x < kInfinity<R>, inside, x);
  const R beyond = select(x < F(-1), like(x, kNan<R>), above);
  return select(x == F(0), x, select(x == F(-1), like(x, -kInfinity<R>), beyond));
}

// --- Roots

template <class R>
R rsqrt(R x) {
  return like(x, 1) / sqrt(x);
}

template <class R>
R cbrt(R x) {
  using F = Format<R>;
  constexpr int kShift = sizeof(F) == 4 ? 24 : 54;  // A multiple of three.
  const R a = abs(x);
  const Bool<R> tiny = a < std::numeric_limits<F>::min();
  const Int<R> pattern = bits(select(tiny, a * static_cast<F>(int64_t{1} << kShift), a));
  const Int<R> exponent = (pattern >> kMantissaBits<F>)-int_like(x, kBias<F>);
  // A third of the exponent, rounded down: 43691 / 2^17 is 1/3 for numbers this small.
  const Int<R> third =
      (((exponent + int_like(x, 1536)) * int_like(x, 43691)) >> 17) - int_like(x, 512);
  const R m = from_bits(pattern - ((third * int_like(x, 3)) << kMantissaBits<F>));  // [1, 8)
  R y = polynomial(m, Constants<R>::kCbrt);
  for (int i = 0; i < (sizeof(F) == 4 ? 1 : 2); ++i) {  // Halley
    const R cube = y * y * y;
    y = y * (cube + m * F(2)) / (cube * F(2) + m);
  }
  // Newton, with the residual y^3 - m in two parts.
  const R square = y * y;
  const R residual = fma(square, y, -m) + fma(y, y, -square) * y;
  y = y - residual / (square * F(3));
  const Int<R> back = third - select(tiny, int_like(x, kShift / 3), int_like(x, 0));
  const R root = with_sign(from_bits(bits(y) + (back << kMantissaBits<F>)), x);
  // Zero, infinity and NaN are their own roots.
  return select(both(a > F(0), a < kInfinity<R>), root, x);
}

// --- The angle of a point

template <class R>
R atan2(R y, R x) {
  using F = Format<R>;
  using K = Constants<R>;
  const R ay = abs(y);
  const R ax = abs(x);
  const Bool<R> steep = ay > ax;
  const R top = max(ax, ay);
  const R bottom = min(ax, ay);
  // Scales by a power of two, so that nothing over- or underflows; infinities become finite.
  constexpr F kGreat = std::numeric_limits<F>::max() / 4;
  constexpr F kSmall = std::numeric_limits<F>::min() * (sizeof(F) == 4 ? F(0x1p30) : F(0x1p60));
  constexpr F kUp = sizeof(F) == 4 ? F(0x1p60) : F(0x1p120);
  const R scale =
      select(top > kGreat, like(x, 0.25), select(top < kSmall, like(x, kUp), like(x, 1)));
  const Bool<R> infinite = top == kInfinity<R>;
  const R finite_bottom = select(bottom == kInfinity<R>, like(x, 1), like(x, 0));
  const R long_side = select(infinite, like(x, 1), top * scale);
  const R short_side = select(infinite, finite_bottom, bottom * scale);
  // atan(short / long) = atan(c) + atan(t), |t| <= 1/4.
  const Bool<R> first = either(short_side < long_side * F(0.25), top == F(0));
  const Bool<R> second = short_side < long_side * F(0.71875);
  const auto by_third = [&](F a, F b, F c) {
    return select(first, like(x, a), select(second, like(x, b), like(x, c)));
  };
  const R c = by_third(0, 0.5, 1);
  const R quotient = fma(-c, long_side, short_side) / fma(c, short_side, long_side);
  const R t = select(top == F(0), like(x, 0), quotient);
  const R z = t * t;
  const R rest = fma(t * z, polynomial(z, K::kAtan), t);
  const R base = by_third(0, K::kAtanHalfHigh, K::kPiOver2A / 2);
  const R base_low = by_third(0, K::kAtanHalfLow, K::kPiOver2B / 2);
  const Sum<R> flat = fast_two_sum(base, rest + base_low);
  // Beyond 45 degrees, the angle is measured from the other axis; behind the origin, from the
  // negative axis.
  const Sum<R> turned = fast_two_sum(like(x, K::kPiOver2A), -flat.high);
  const R turned_low = (turned.low + K::kPiOver2B) - flat.low;
  const Sum<R> quarter = {select(steep, turned.high, flat.high),
                          select(steep, turned_low, flat.low)};
  const Sum<R> back = fast_two_sum(like(x, K::kPiHigh), -quarter.high);
  const R behind = back.high + ((back.low + K::kPiLow) - quarter.low);
  const Bool<R> negative = bits(x) < int_like(x, 0);
  const R angle = select(negative, behind, quarter.high + quarter.low);
  return with_sign(select(is_nan(top), top, angle), y);
}

// --- Powers

/// The logarithm of a normal or subnormal x > 0, to about nine bits more than the format has.
template <class R>
Sum<R> log_in_two(R x) {
  using F = Format<R>;
  using K = Constants<R>;
  const ScaledMantissa<R> split = split_any(x);
  const R f = split.m - F(1);
  // s = f / (2 + f) in two parts.
  const R u = f + F(2);
  const R u_low = f - (u - F(2));
  const R s = f / u;
  const R s_low = fma(-s, u_low, fma(-s, u, f)) / u;
  // 2 s + 2/3 s^3 in two parts, and the terms after it.
  const R z = s * s;
  const R z_low = fma(s, s, -z) + s * s_low * F(2);
  const R cube = z * s;
  const R cube_low = fma(z, s, -cube) + fma(z_low, s, z * s_low);
  const R third = cube * K::kTwoThirdsHigh;
  const R third_low = fma(cube, like(x, K::kTwoThirdsHigh), -third) +
                      fma(cube_low, like(x, K::kTwoThirdsHigh), cube * K::kTwoThirdsLow);
  const R tail = cube * z * polynomial(z, K::kLogTail);
  const Sum<R> mantissa = fast_two_sum(s * F(2), third);
  const R mantissa_low = fma(s_low, like(x, 2), mantissa.low) + (third_low + tail);
  const R n = to_real(split.exponent);
  const Sum<R> whole = fast_two_sum(n * K::kLn2High, mantissa.high);
  const R low = whole.low + fma(n, like(x, K::kLn2Low), mantissa_low);
  return fast_two_sum(whole.high, low);
}

template <class R>
R pow(R x, R y) {
  using F = Format<R>;
  const R ax = abs(x);
  // Beyond this bound every power is 0 or infinite, except powers of 1.
  constexpr F kMost = sizeof(F) == 4 ? F(0x1p40) : F(0x1p80);
  const R exponent = min(max(y, like(y, -kMost)), like(y, kMost));
  const Sum<R> log = log_in_two(ax);
  const R product = log.high * exponent;
  const R rest = fma(log.high, exponent, -product) + log.low * exponent;
  const Bool<R> settled = abs(product) > F(2) * kExpHigh<F>;
  const R inside = exp_of_sum(product, select(settled, like(x, 0), rest));
  // Zero and infinity to a power.
  const Bool<R> rises = y > F(0);
  const R at_zero = select(rises, like(x, 0), like(x, kInfinity<R>));
  const R at_infinity = select(rises, like(x, kInfinity<R>), like(x, 0));
  const R size = select(ax == F(0), at_zero, select(ax == kInfinity<R>, at_infinity, inside));
  // Negative numbers have only integer powers; odd powers keep the sign.
  const Bool<R> whole = trunc(y) == y;
  const R half = y * F(0.5);
  const Bool<R> odd = both(whole, negate(trunc(half) == half));
  const R odd_sign = select(odd, x, like(x, 0));
  const Bool<R> undefined = both(both(x < F(0), negate(whole)), ax < kInfinity<R>);
  const R result = select(undefined, like(x, kNan<R>), with_sign(size, odd_sign));
  const Bool<R> no_number = either(is_nan(x), is_nan(y));
  const Bool<R> one =
      either(either(x == F(1), y == F(0)), both(x == F(-1), abs(y) == kInfinity<R>));
  return select(one, like(x, 1), select(no_number, x + y, result));
}

}  // namespace tenon::kernel::math
