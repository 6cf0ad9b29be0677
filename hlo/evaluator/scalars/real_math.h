// Elementary functions on double and binary128, from the C library.
//
// glibc declares the binary128 functions with the suffix f128 on every platform whose compiler has
// the type. Their results are within 2 units of 113 bits, so that, rounded to f64 or less, they are
// the reference for every accuracy test.
#pragma once

#include <cmath>

#include "core/types/float_convert.h"

// The C library declares these only for GCC; Clang has the type and can call them.
extern "C" {
__float128 expf128(__float128) noexcept;
__float128 expm1f128(__float128) noexcept;
__float128 logf128(__float128) noexcept;
__float128 log1pf128(__float128) noexcept;
__float128 sinf128(__float128) noexcept;
__float128 cosf128(__float128) noexcept;
__float128 tanf128(__float128) noexcept;
__float128 sinhf128(__float128) noexcept;
__float128 coshf128(__float128) noexcept;
__float128 tanhf128(__float128) noexcept;
__float128 asinf128(__float128) noexcept;
__float128 acosf128(__float128) noexcept;
__float128 atanf128(__float128) noexcept;
__float128 asinhf128(__float128) noexcept;
__float128 acoshf128(__float128) noexcept;
__float128 atanhf128(__float128) noexcept;
__float128 sqrtf128(__float128) noexcept;
__float128 cbrtf128(__float128) noexcept;
__float128 floorf128(__float128) noexcept;
__float128 ceilf128(__float128) noexcept;
__float128 roundf128(__float128) noexcept;
__float128 nearbyintf128(__float128) noexcept;
__float128 fabsf128(__float128) noexcept;
__float128 erff128(__float128) noexcept;
__float128 erfcf128(__float128) noexcept;
__float128 lgammaf128(__float128) noexcept;
__float128 tgammaf128(__float128) noexcept;
__float128 powf128(__float128, __float128) noexcept;
__float128 atan2f128(__float128, __float128) noexcept;
__float128 hypotf128(__float128, __float128) noexcept;
__float128 fmodf128(__float128, __float128) noexcept;
__float128 copysignf128(__float128, __float128) noexcept;
__float128 ldexpf128(__float128, int) noexcept;
int ilogbf128(__float128) noexcept;
}

namespace tenon::hlo::real {

// One overload per type; the names are the C library's.
inline double exp(double x) { return std::exp(x); }
inline Float128 exp(Float128 x) { return ::expf128(x); }
inline double expm1(double x) { return std::expm1(x); }
inline Float128 expm1(Float128 x) { return ::expm1f128(x); }
inline double log(double x) { return std::log(x); }
inline Float128 log(Float128 x) { return ::logf128(x); }
inline double log1p(double x) { return std::log1p(x); }
inline Float128 log1p(Float128 x) { return ::log1pf128(x); }
inline double sin(double x) { return std::sin(x); }
inline Float128 sin(Float128 x) { return ::sinf128(x); }
inline double cos(double x) { return std::cos(x); }
inline Float128 cos(Float128 x) { return ::cosf128(x); }
inline double tan(double x) { return std::tan(x); }
inline Float128 tan(Float128 x) { return ::tanf128(x); }
inline double sinh(double x) { return std::sinh(x); }
inline Float128 sinh(Float128 x) { return ::sinhf128(x); }
inline double cosh(double x) { return std::cosh(x); }
inline Float128 cosh(Float128 x) { return ::coshf128(x); }
inline double tanh(double x) { return std::tanh(x); }
inline Float128 tanh(Float128 x) { return ::tanhf128(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline Float128 sqrt(Float128 x) { return ::sqrtf128(x); }
inline double cbrt(double x) { return std::cbrt(x); }
inline Float128 cbrt(Float128 x) { return ::cbrtf128(x); }
inline double pow(double x, double y) { return std::pow(x, y); }
inline Float128 pow(Float128 x, Float128 y) { return ::powf128(x, y); }
inline double atan2(double y, double x) { return std::atan2(y, x); }
inline Float128 atan2(Float128 y, Float128 x) { return ::atan2f128(y, x); }
inline double hypot(double x, double y) { return std::hypot(x, y); }
inline Float128 hypot(Float128 x, Float128 y) { return ::hypotf128(x, y); }
inline double fmod(double x, double y) { return std::fmod(x, y); }
inline Float128 fmod(Float128 x, Float128 y) { return ::fmodf128(x, y); }
inline double floor(double x) { return std::floor(x); }
inline Float128 floor(Float128 x) { return ::floorf128(x); }
inline double ceil(double x) { return std::ceil(x); }
inline Float128 ceil(Float128 x) { return ::ceilf128(x); }
inline double round(double x) { return std::round(x); }
inline Float128 round(Float128 x) { return ::roundf128(x); }
inline double nearbyint(double x) { return std::nearbyint(x); }
inline Float128 nearbyint(Float128 x) { return ::nearbyintf128(x); }
inline double fabs(double x) { return std::fabs(x); }
inline Float128 fabs(Float128 x) { return ::fabsf128(x); }
inline double copysign(double x, double s) { return std::copysign(x, s); }
inline Float128 copysign(Float128 x, Float128 s) { return ::copysignf128(x, s); }
inline bool isnan(double x) { return std::isnan(x); }
inline bool isnan(Float128 x) { return x != x; }
inline bool isinf(double x) { return std::isinf(x); }
inline bool isinf(Float128 x) { return real::fabs(x) == static_cast<Float128>(HUGE_VAL); }
inline bool signbit(double x) { return std::signbit(x); }
inline bool signbit(Float128 x) { return real::copysign(static_cast<Float128>(1), x) < 0; }

inline double erf(double x) { return std::erf(x); }
inline Float128 erf(Float128 x) { return ::erff128(x); }
inline double erfc(double x) { return std::erfc(x); }
inline Float128 erfc(Float128 x) { return ::erfcf128(x); }

template <class R>
R logistic(R x) {
  // Uses the form whose exponential cannot overflow.
  if (x >= 0) return 1 / (1 + real::exp(-x));
  const R e = real::exp(x);
  return e / (1 + e);
}
template <class R>
R rsqrt(R x) {
  return 1 / real::sqrt(x);
}
/// IEEE 754-2019 maximum: NaN wins, -0 < +0.
template <class R>
R maximum(R x, R y) {
  if (isnan(x)) return x;
  if (isnan(y)) return y;
  if (x == y) return real::signbit(x) ? y : x;
  return x > y ? x : y;
}
template <class R>
R minimum(R x, R y) {
  if (isnan(x)) return x;
  if (isnan(y)) return y;
  if (x == y) return real::signbit(x) ? x : y;
  return x < y ? x : y;
}
template <class R>
R sign(R x) {
  if (isnan(x) || x == 0) return x;
  return x > 0 ? R(1) : R(-1);
}

}  // namespace tenon::hlo::real
