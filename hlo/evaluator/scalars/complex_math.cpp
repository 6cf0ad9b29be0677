#include "hlo/evaluator/scalars/complex_math.h"

// The C library's complex functions; C++ has no header that declares them on __float128.
using CFloat128 [[gnu::mode(TC)]] = _Complex float;
extern "C" {
CFloat128 cexpf128(CFloat128);
CFloat128 clogf128(CFloat128);
CFloat128 csqrtf128(CFloat128);
CFloat128 csinf128(CFloat128);
CFloat128 ccosf128(CFloat128);
CFloat128 ctanf128(CFloat128);
CFloat128 ctanhf128(CFloat128);
}

namespace tenon::hlo::cplx {
namespace {

CFloat128 pack(C x) {
  CFloat128 out;
  __real__ out = x.re;
  __imag__ out = x.im;
  return out;
}
C unpack(CFloat128 x) { return {__real__ x, __imag__ x}; }

constexpr Float128 kHalf = 0.5;

}  // namespace

C add(C x, C y) { return {x.re + y.re, x.im + y.im}; }
C sub(C x, C y) { return {x.re - y.re, x.im - y.im}; }
C mul(C x, C y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }

namespace {

bool is_infinite(C x) { return real::isinf(x.re) || real::isinf(x.im); }
bool is_finite(Float128 x) { return !real::isinf(x) && !real::isnan(x); }
bool is_finite(C x) { return is_finite(x.re) && is_finite(x.im); }
// 1 with the sign of an infinity; 0 with the sign of any other number.
Float128 unit_of_infinity(Float128 x) { return real::copysign(real::isinf(x) ? 1 : 0, x); }
C units_of_infinity(C x) { return {unit_of_infinity(x.re), unit_of_infinity(x.im)}; }

// x times the conjugate of y.
C times_conjugate(C x, C y) { return {x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im}; }
C scale(Float128 s, C x) { return {s * x.re, s * x.im}; }

}  // namespace

// Annex G.5.1: divided by zero, an infinity; an infinity divided by a finite number, an infinity; a
// finite number divided by an infinity, a zero.
C div(C x, C y) {
  const auto infinity = static_cast<Float128>(HUGE_VAL);
  const Float128 norm = y.re * y.re + y.im * y.im;
  if (y.re == 0 && y.im == 0) return scale(real::copysign(infinity, y.re), x);
  if (is_infinite(x) && is_finite(y)) {
    return scale(infinity, times_conjugate(units_of_infinity(x), y));
  }
  if (is_infinite(y) && is_finite(x)) return scale(0, times_conjugate(x, units_of_infinity(y)));
  const C product = times_conjugate(x, y);
  return {product.re / norm, product.im / norm};
}

Float128 abs(C x) { return real::hypot(x.re, x.im); }

C exp(C x) { return unpack(cexpf128(pack(x))); }

C expm1(C x) {
  // (e^a - 1) cos b + (cos b - 1), with cos b - 1 = -2 sin^2(b / 2).
  const Float128 half_sine = real::sin(x.im * kHalf);
  const Float128 e = real::expm1(x.re);
  const Float128 re = e * real::cos(x.im) - 2 * half_sine * half_sine;
  const Float128 im = x.im == 0 ? x.im : real::exp(x.re) * real::sin(x.im);
  return {re, im};
}

C log(C x) { return unpack(clogf128(pack(x))); }

C log1p(C x) {
  // |1 + x|^2 - 1 = a (2 + a) + b^2 keeps small numbers accurate.
  const Float128 tiny = x.re * (2 + x.re) + x.im * x.im;
  const Float128 im = real::atan2(x.im, 1 + x.re);
  if (real::fabs(tiny) < kHalf) return {real::log1p(tiny) * kHalf, im};
  return {real::log(real::hypot(1 + x.re, x.im)), im};
}

C sqrt(C x) { return unpack(csqrtf128(pack(x))); }
C rsqrt(C x) {
  if (real::isinf(x.re) || real::isinf(x.im)) return {0, 0};
  return div({1, 0}, sqrt(x));
}
C cbrt(C x) {
  if (x.re == 0 && x.im == 0) return x;
  const C l = log(x);
  return exp({l.re / 3, l.im / 3});
}
C sin(C x) { return unpack(csinf128(pack(x))); }
C cos(C x) { return unpack(ccosf128(pack(x))); }
C tan(C x) { return unpack(ctanf128(pack(x))); }
C tanh(C x) { return unpack(ctanhf128(pack(x))); }

C logistic(C x) {
  const C e = exp({-x.re, -x.im});
  if (real::isinf(e.re) || real::isinf(e.im)) return {0, 0};
  return div({1, 0}, add({1, 0}, e));
}

C pow(C x, C y, Float128 limit) {
  if (y.re == 0 && y.im == 0) return {1, 0};
  if (x.re == 0 && x.im == 0) {
    if (y.im == 0) return y.re > 0 ? C{0, 0} : C{static_cast<Float128>(HUGE_VAL), 0};
  }
  if (y.re == 1 && y.im == 0) return x;
  const C l = log(x);
  const auto product = [&](Float128 a, Float128 b) {
    const Float128 p = a * b;
    return real::fabs(p) > limit ? real::copysign(static_cast<Float128>(HUGE_VAL), p) : p;
  };
  return exp(
      {product(y.re, l.re) - product(y.im, l.im), product(y.re, l.im) + product(y.im, l.re)});
}

C atan2(C y, C x) {
  // -i log((x + i y) / sqrt(x^2 + y^2))
  const C numerator = {x.re - y.im, x.im + y.re};
  const C l = log(div(numerator, sqrt(add(mul(x, x), mul(y, y)))));
  return {l.im, -l.re};
}

C sign(C x) {
  if (real::isnan(x.re) || real::isnan(x.im)) {
    const auto nan = static_cast<Float128>(__builtin_nan(""));
    return {nan, nan};
  }
  if (x.re == 0 && x.im == 0) return {0, 0};
  const Float128 norm = abs(x);
  return {x.re / norm, x.im / norm};
}

}  // namespace tenon::hlo::cplx
