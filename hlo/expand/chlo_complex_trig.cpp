// Complex inverse trigonometric and hyperbolic functions, in real arithmetic on both parts.
//
// asin and acos after T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, "Implementing the complex
// arcsine and arccosine functions using exception handling", ACM TOMS 23 (1997), with the reduced
// set of regions of the project functional_algorithms, which the StableHLO decompositions use.
#include <cmath>
#include <limits>
#include <numbers>

#include "hlo/expand/expand_math.h"

namespace tenon::hlo::expand {
namespace {

// sqrt(x^2 + y^2) of non-negative x and y, without overflow or underflow in the squares.
Expr hypot(Expr x, Expr y) {
  const Expr large = max(x, y);
  const Expr small = min(x, y);
  const Expr ratio = small / large;
  const Expr square = ratio * ratio;
  const Expr root = sqrt(1 + square);
  // Where the root rounds to 1, the first term of its series still counts.
  const Expr scaled = select((root == 1) & (square > 0), large + large * square / 2, large * root);
  return select(large == small, large * std::numbers::sqrt2, scaled);
}

Expr with_sign(Expr magnitude, Expr of) { return select(of < 0, -magnitude, magnitude); }

Expr is_infinite(Expr x) { return abs(x) == std::numeric_limits<double>::infinity(); }

}  // namespace

// w with asin(z) = (atan2(re z, re w), ±im w): with x, y the magnitudes of the parts and
// a = (|z + 1| + |z - 1|) / 2, w = (sqrt(a^2 - x^2), log(a + sqrt(a^2 - 1))).
Expr complex_asin_acos_kernel(Expr z) {
  const Expr x = abs(real(z));
  const Expr y = abs(imag(z));
  const double safe_max = std::sqrt(max_finite(x)) / 8;
  const double safe_min = std::sqrt(min_normal(x)) * 4;
  const Expr xp1 = x + 1;
  const Expr xm1 = x - 1;
  const Expr r = hypot(xp1, y);
  const Expr s = hypot(abs(xm1), y);
  const Expr a = 0.5 * (r + s);
  const Expr ap1 = a + 1;
  const Expr yy = y * y;
  const Expr rpxp1 = r + xp1;
  const Expr smxm1 = s - xm1;
  const Expr spxm1 = s + xm1;

  // Real part: a - x written without cancellation on either side of 1.
  const Expr half_sum = 0.5 * (a + x);
  const Expr inside = sqrt(half_sum * (yy / rpxp1 + smxm1));
  const Expr outside = y * sqrt(half_sum / rpxp1 + half_sum / spxm1);
  const Expr re = select(max(x, y) >= safe_max, y, select(x <= 1, inside, outside));

  // Imaginary part: log(2 |z|) far out, y / sqrt(1 - x^2) near the real segment, else log1p.
  const Expr y_limit = select(x < safe_max * 1e12, x.like(safe_max * 1e-6), safe_max * 100);
  const Expr y_is_far = y >= y_limit;
  const Expr largest = select(y_is_far, y, x);
  const Expr limit = select(y_is_far, y_limit, safe_max);
  const Expr x_over_y = select(y_is_far & !is_infinite(y), x / y, 0);
  const Expr far = log(largest) + std::numbers::ln2 + 0.5 * log1p(x_over_y * x_over_y);

  const Expr near_segment = (y < safe_min) & (x < 1);
  const Expr half_yy = 0.5 * yy;
  const Expr low = half_yy / rpxp1;
  const Expr am1_safe =
      select(x >= 1, low + 0.5 * spxm1, select(a <= 1.5, low + half_yy / smxm1, a - 1));
  const Expr am1 = select(near_segment, -(xp1 * xm1 / ap1), am1_safe);
  const Expr root = sqrt(am1 * ap1);
  const Expr im = select(largest >= limit, far, select(near_segment, y / root, log1p(am1 + root)));
  return complex(re, im);
}

Expr complex_asin(Expr z) {
  const Expr w = complex_asin_acos_kernel(z);
  return complex(atan2(real(z), real(w)), with_sign(imag(w), imag(z)));
}

Expr complex_acos(Expr z) {
  const Expr w = complex_asin_acos_kernel(z);
  return complex(atan2(real(w), real(z)), with_sign(-imag(w), imag(z)));
}

Expr complex_acosh(Expr z) {
  const Expr w = complex_asin_acos_kernel(z);
  return complex(imag(w), with_sign(atan2(real(w), real(z)), imag(z)));
}

Expr complex_asinh(Expr z) {
  // -i asin(i z)
  const Expr x = real(z);
  const Expr y = imag(z);
  const Expr w = complex_asin_acos_kernel(complex(-y, x));
  return complex(with_sign(imag(w), x), atan2(y, real(w)));
}

// re: log1p(4 x / ((1 - x)^2 + y^2)) / 4; im: atan2(2 y, (1 - x)(1 + x) - y^2) / 2, x >= 0.
Expr complex_atanh(Expr z) {
  const Expr x = real(z);
  const Expr y = imag(z);
  const Expr ax = abs(x);
  const Expr ay = abs(y);
  // Past the square of this bound 1 is lost in the squares.
  const double inverse_epsilon = is_f64(x) ? 9007199254740994.0 : 16777218.0;
  const double safe_max = inverse_epsilon * inverse_epsilon;
  const Expr is_safe = (ax < safe_max) & (ay < safe_max);
  const Expr one_minus = 1 - ax;
  const Expr yy = y * y;
  const Expr inside = ax / (one_minus * one_minus + yy);
  const Expr both = select(is_infinite(x) | is_infinite(y), 0, 1 / (ax / y + y / ax) / y);
  const Expr outside = select(ay * inverse_epsilon < ax, 1 / ax, both);
  const Expr re = 0.25 * log1p(4 * select(is_safe, inside, outside));
  const Expr angle = select(is_safe, atan2(y + y, one_minus * (1 + ax) - yy),
                            with_sign(y.like(std::numbers::pi), y));
  return complex(with_sign(re, x), 0.5 * angle);
}

Expr complex_atan(Expr z) {
  // -i atanh(i z)
  const Expr w = complex_atanh(complex(-imag(z), real(z)));
  return complex(imag(w), -real(w));
}

namespace {

// cosh and sinh of |x| divided by exp(|x| / 2): their products with a sine overflow only where the
// result does.
struct Hyperbolic {
  Expr scale;
  Expr cosh;
  Expr sinh;
};
Hyperbolic scaled_hyperbolic(Expr x) {
  const Expr large = abs(x) > 20;
  const Expr root = exp(abs(x) * 0.5);
  return {select(large, root, 1), select(large, 0.5 * root, cosh(x)),
          select(large, sign(x) * (0.5 * root), sinh(x))};
}

}  // namespace

Expr complex_cosh(Expr z) {
  const Expr x = real(z);
  const Expr y = imag(z);
  const Hyperbolic h = scaled_hyperbolic(x);
  // On the axes an infinite factor meets an exact zero.
  const Expr im = select((y == 0) | (x == 0), sign(x) * sign(y), h.sinh * sin(y) * h.scale);
  return complex(h.cosh * cos(y) * h.scale, im);
}

Expr complex_sinh(Expr z) {
  const Expr x = real(z);
  const Expr y = imag(z);
  const Hyperbolic h = scaled_hyperbolic(x);
  const Expr re = select(x == 0, x, h.sinh * cos(y) * h.scale);
  return complex(re, select(y == 0, y, h.cosh * sin(y) * h.scale));
}

}  // namespace tenon::hlo::expand
