// Trigonometric and hyperbolic functions of complex arguments.
//
// Branch cuts are those of C's Annex G: on a cut the sign of the zero part selects the side.
#include <cmath>

#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

Expr hypotenuse(const Expr& x, const Expr& y) { return sqrt(x * x + y * y); }

}  // namespace

// After T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, "Implementing the complex arcsine and
// arccosine functions using exception handling", ACM TOMS 23 (1997) 299-335: sums of positive terms
// instead of a^2 - x^2 and a - 1. Terms y^2 / d are kept as y * (y / d) or as roots, so that only
// arguments near overflow need separate formulas.
ComplexExpr asin_acos_kernel(const ComplexExpr& z) {
  const Expr x = abs(z.re), y = abs(z.im);
  const Expr right = x + 1.0, left = x - 1.0;
  const Expr r = hypotenuse(right, y);
  // Unless x - 1 is zero, it is so much greater than y^2 that an underflow of y^2 does not matter.
  const Expr s = select(left == 0.0, y, hypotenuse(left, y));
  const Expr a = 0.5 * (r + s);
  const Expr inside = x <= 1.0;
  const Expr far = r + right;  // (a + x) > y^2 / far
  const Expr near_in = s - left, near_out = s + left;

  // sqrt(a^2 - x^2)
  const Expr half_sum = 0.5 * (a + x);
  const Expr root_in = sqrt(half_sum * (y * (y / far) + near_in));
  const Expr root_out = y * sqrt(half_sum / far + half_sum / near_out);
  const Expr root = select(inside, root_in, root_out);

  // log1p((a - 1) + sqrt((a - 1)(a + 1)))
  const Expr half_above = 0.5 * (a + 1.0);
  const Expr slope = y * sqrt(1.0 / far + 1.0 / near_in);  // sqrt(2 (a - 1)), for x < 1
  const Expr twice = y * (y / far) + near_out;             // 2 (a - 1), for x >= 1
  const Expr log_argument = select(x < 1.0, 0.5 * (slope * slope) + slope * sqrt(half_above),
                                   0.5 * twice + sqrt(twice * half_above));

  // Where squares might overflow, uses |z| for a and y for sqrt(a^2 - x^2).
  const Expr greater = max(x, y);
  const Expr ratio = select(x == y, 1.0, min(x, y) / greater);
  const Expr log_large = log(greater) + kLogOf2 + 0.5 * log1p(ratio * ratio);
  const Expr is_large = greater >= std::sqrt(greatest(x)) / 8;
  return {select(is_large, y, root), select(is_large, log_large, log1p(log_argument))};
}

ComplexExpr complex_asin(const ComplexExpr& z) {
  const ComplexExpr w = asin_acos_kernel(z);
  return {atan2(z.re, w.re), with_sign_of(w.im, z.im)};
}

ComplexExpr complex_acos(const ComplexExpr& z) {
  const ComplexExpr w = asin_acos_kernel(z);
  return {atan2(w.re, z.re), with_sign_of(w.im, -z.im)};
}

ComplexExpr complex_acosh(const ComplexExpr& z) {
  const ComplexExpr w = asin_acos_kernel(z);
  return {w.im, with_sign_of(atan2(w.re, z.re), z.im)};
}

// -i asin(i z)
ComplexExpr complex_asinh(const ComplexExpr& z) {
  const ComplexExpr w = asin_acos_kernel({z.im, z.re});
  return {with_sign_of(w.im, z.re), atan2(z.im, w.re)};
}

namespace {

// x / (x^2 + y^2) for large numbers, whose squares would overflow.
Expr real_of_inverse(const Expr& x, const Expr& y) {
  const Expr greater = max(x, y), ratio = min(x, y) / greater;
  const Expr inverse = 1.0 / (greater * (1.0 + ratio * ratio));
  return select(greater == kInfinity, 0.0, select(x < y, ratio * inverse, inverse));
}

}  // namespace

// re = log1p(4 x / ((1 - x)^2 + y^2)) / 4, im = atan2(2 y, (1 - x) (1 + x) - y^2) / 2 for x >= 0,
// after W. Kahan, "Branch cuts for complex elementary functions" (1987).
ComplexExpr complex_atanh(const ComplexExpr& z) {
  const Expr x = abs(z.re), y = abs(z.im);
  const Expr left = 1.0 - x;
  const Expr square = y * y;
  const Expr re = 0.25 * log1p(4.0 * (x / (left * left + square)));
  const Expr angle = 0.5 * atan2(2.0 * z.im, left * (1.0 + x) - square);

  // At x = 1 the square of a small y may underflow; the real part is then log(2 / y) / 2.
  const Expr near_one = (x == 1.0) & (y < for_type(x, 0x1p-30, 0x1p-60));
  const Expr re_near_one = 0.5 * (kLogOf2 - log(y));
  // For large arguments, log1p and atan2 are their first terms.
  const Expr is_far = max(x, y) > for_type(x, 0x1p26, 0x1p55);
  const Expr re_far = real_of_inverse(x, y);
  const Expr angle_far = with_sign_of(z.im.constant(kPi / 2), z.im);
  return {with_sign_of(select(is_far, re_far, select(near_one, re_near_one, re)), z.re),
          select(is_far, angle_far, angle)};
}

// -i atanh(i z)
ComplexExpr complex_atan(const ComplexExpr& z) {
  const ComplexExpr w = complex_atanh({-z.im, z.re});
  return {w.im, -w.re};
}

namespace {

// sinh and cosh of the real part, each multiplied by a number of at most 1: if one factor
// overflows, the product is computed in steps.
class HyperbolicExpr {
 public:
  explicit HyperbolicExpr(const Expr& x)
      : x_(x), sinh_(real_sinh(x)), cosh_(real_cosh(x)), root_(root_of_exp(abs(x))) {}
  Expr sinh_times(const Expr& factor) const {
    return select(is_large(), sign(x_) * half_exp_times(factor), sinh_ * factor);
  }
  Expr cosh_times(const Expr& factor) const {
    return select(is_large(), half_exp_times(factor), cosh_ * factor);
  }

 private:
  Expr is_large() const { return abs(x_) >= 20.0; }
  Expr half_exp_times(const Expr& factor) const { return root_ * (0.5 * root_ * factor); }
  Expr x_, sinh_, cosh_, root_;
};

// `product`, or `zero` where a factor of zero met an infinity or NaN.
Expr or_zero(const Expr& product, const Expr& has_zero, const Expr& zero) {
  return select(has_zero & (product != product), zero, product);
}

}  // namespace

// sinh x cos y + i cosh x sin y
ComplexExpr complex_sinh(const ComplexExpr& z) {
  const HyperbolicExpr h(z.re);
  return {or_zero(h.sinh_times(cos(z.im)), z.re == 0.0, z.re),
          or_zero(h.cosh_times(sin(z.im)), z.im == 0.0, z.im)};
}

// cosh x cos y + i sinh x sin y
ComplexExpr complex_cosh(const ComplexExpr& z) {
  const HyperbolicExpr h(z.re);
  const Expr zero = select(is_negative(z.re) ^ is_negative(z.im), -0.0, z.re.constant(0));
  return {h.cosh_times(cos(z.im)),
          or_zero(h.sinh_times(sin(z.im)), (z.re == 0.0) | (z.im == 0.0), zero)};
}

}  // namespace tenon::hlo::decomposition
