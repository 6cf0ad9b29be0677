// Special functions in binary128 that the C library lacks, and its complex functions, for accuracy
// tests.
#pragma once

#include <cmath>

#include "core/types/float_convert.h"
#include "hlo/evaluator/scalars/real_math.h"

// The C library's complex functions; C++ has no header that declares them on __float128.
using CFloat128 [[gnu::mode(TC)]] = _Complex float;
extern "C" {
CFloat128 cacosf128(CFloat128);
CFloat128 cacoshf128(CFloat128);
CFloat128 casinf128(CFloat128);
CFloat128 casinhf128(CFloat128);
CFloat128 catanf128(CFloat128);
CFloat128 catanhf128(CFloat128);
CFloat128 ccoshf128(CFloat128);
CFloat128 csinhf128(CFloat128);
CFloat128 ctanf128(CFloat128);
}

namespace tenon::hlo::reference {

inline const Float128 kPi = 4 * atanf128(1);

/// By Newton's method on erf, or on erfc where erf is flat.
inline Float128 erf_inv(Float128 x) {
  const Float128 a = fabsf128(x);
  if (!(a < 1)) return a == 1 ? copysignf128(HUGE_VAL, x) : static_cast<Float128>(NAN);
  const Float128 w = -log1pf128(-a * a);
  // S. Winitzki's approximation as the initial value, accurate to 1%.
  const Float128 u = 2 / (kPi * 0.147) - w / 2;
  Float128 y = sqrtf128(sqrtf128(u * u + w / 0.147) - u);
  if (a < 1e-3) y = a * 0.886;
  for (int i = 0; i < 60; ++i) {
    const Float128 residual = a < 0.5 ? erff128(y) - a : (1 - a) - erfcf128(y);
    // Halley's step.
    const Float128 newton = residual * sqrtf128(kPi) / 2 * expf128(y * y);
    const Float128 step = newton / (1 + y * newton);
    y -= step;
    if (fabsf128(step) <= y * 1e-32) break;
  }
  return copysignf128(y, x);
}

/// Bernoulli numbers B_2, B_4, …, as fractions.
inline Float128 bernoulli(int k) {
  static constexpr double kNumbers[][2] = {
      {1, 6},      {-1, 30},     {1, 42},      {-1, 30},       {5, 66},       {-691, 2730},
      {7, 6},      {-3617, 510}, {43867, 798}, {-174611, 330}, {854513, 138}, {-236364091, 2730},
      {8553103, 6}};
  return static_cast<Float128>(kNumbers[k - 1][0]) / kNumbers[k - 1][1];
}
inline constexpr int kBernoulliCount = 13;

/// By recurrence up to 40 and the asymptotic series; by reflection below 0.
inline Float128 digamma(Float128 x) {
  if (x <= 0) {
    if (x == floorf128(x)) return static_cast<Float128>(NAN);
    const Float128 fraction = x - roundf128(x);
    return digamma(1 - x) - kPi / tanf128(kPi * fraction);
  }
  Float128 sum = 0;
  for (; x < 40; x += 1) sum -= 1 / x;
  sum += logf128(x) - 1 / (2 * x);
  const Float128 square = x * x;
  Float128 power = 1;
  for (int k = 1; k <= kBernoulliCount; ++k) {
    power /= square;
    sum -= bernoulli(k) / (2 * k) * power;
  }
  return sum;
}

/// Hurwitz zeta of s > 1, q > 0 by the Euler-Maclaurin formula from 40 on.
inline Float128 zeta(Float128 s, Float128 q) {
  Float128 sum = 0;
  for (; q < 40; q += 1) sum += powf128(q, -s);
  const Float128 power = powf128(q, -s);
  sum += power * q / (s - 1) + power / 2;
  Float128 term = power * s / q / 2;
  for (int k = 1; k <= kBernoulliCount; ++k) {
    sum += bernoulli(k) * term;
    term *= (s + 2 * k - 1) * (s + 2 * k) / (q * q) / ((2 * k + 1) * (2 * k + 2));
  }
  return sum;
}

inline Float128 polygamma(Float128 n, Float128 x) {
  if (n == 0) return digamma(x);
  const Float128 sign = fmodf128(n, 2) == 1 ? 1 : -1;
  return sign * tgammaf128(n + 1) * zeta(n + 1, x);
}

/// e^-|x| I_1(x): the power series up to 60, then the asymptotic one.
inline Float128 bessel_i1e(Float128 x) {
  const Float128 a = fabsf128(x);
  Float128 sum = 0;
  if (a < 60) {
    Float128 term = a / 2;
    for (int k = 1; k < 400 && term > sum * 1e-36; ++k) {
      sum += term;
      term *= (a / 2) * (a / 2) / (static_cast<Float128>(k) * (k + 1));
    }
    return copysignf128(sum * expf128(-a), x);
  }
  Float128 term = 1;
  for (int k = 1; k < 100 && fabsf128(term) > 1e-36; ++k) {
    sum += term;
    const Float128 odd = 2 * k - 1;
    term *= -(4 - odd * odd) / (8 * a * k);
  }
  return copysignf128(sum / sqrtf128(2 * kPi * a), x);
}

}  // namespace tenon::hlo::reference
