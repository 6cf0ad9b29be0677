// Inverse trigonometric and hyperbolic functions of real and complex arguments.
#include <cmath>

#include "core/types/float_convert.h"
#include "hlo/expand/expression.h"

namespace tenon::hlo::expand {
namespace {

bool is_complex_op(const Instruction& op) { return is_complex(op.operand_type(0).element_type()); }

double largest(Expr x) { return float_max(x.type()); }
// The least normal number of f32 or f64.
double least_normal(Expr x) { return x.type() == ElementType::kF64 ? 0x1p-1022 : 0x1p-126; }

// sqrt(a^2 + b^2) without overflow; a and b are not negative.
Expr hypotenuse(Expr a, Expr b) {
  const Expr large = maximum(a, b);
  const Expr small = minimum(a, b);
  const Expr ratio = small / large;
  const Expr square = ratio * ratio;
  const Expr root = sqrt(1 + square);
  // Where the root rounds to 1 its first-order term still counts.
  const Expr tiny = equals(root, 1) & (square > 0);
  const Expr general = select(tiny, large + large * square / 2, large * root);
  return select(equals(large, small), std::sqrt(2.0) * large, general);
}

}  // namespace

// The common part of asin and acos (Hull, Fairgrieve and Tang, "Implementing the complex arcsine and
// arccosine functions using exception handling", ACM TOMS 23, 1997): with x = |Re z|, y = |Im z|,
//   re = sqrt((a + x)(…)), so that Re asin z = atan2(x, re) and Re acos z = atan2(re, x),
//   im = log(a + sqrt(a^2 - 1)) = |Im asin z|,
// where r = |z + 1|, s = |z - 1| and a = (r + s) / 2, each difference taken where it does not cancel.
Values chlo__asin_acos_kernel(Builder& b, const Instruction& op) {
  const Expr z(b, op.operand(0));
  const Expr x = abs(real_part(z));
  const Expr y = abs(imaginary_part(z));
  if (!b.ok()) return done(b, {});
  const double safe_max = std::sqrt(largest(x)) / 8;
  const double safe_min = std::sqrt(least_normal(x)) * 4;
  const Expr xp1 = x + 1;
  const Expr xm1 = x - 1;
  const Expr r = hypotenuse(abs(xp1), y);
  const Expr s = hypotenuse(abs(xm1), y);
  const Expr a = 0.5 * (r + s);
  const Expr half_apx = 0.5 * (a + x);
  const Expr yy = y * y;
  const Expr rpxp1 = r + xp1;
  const Expr smxm1 = s - xm1;
  const Expr spxm1 = s + xm1;

  const Expr re_inner = sqrt(half_apx * (yy / rpxp1 + smxm1));
  const Expr re_outer = y * sqrt(half_apx / rpxp1 + half_apx / spxm1);
  const Expr re = select(maximum(x, y) >= safe_max, y, select(x <= 1, re_inner, re_outer));

  // For very large arguments log(2) + log(max) with a correction by the lesser part.
  const Expr y_limit = select(x < safe_max * 1e12, x.like(safe_max * 1e-6), x.like(safe_max * 1e2));
  const Expr y_huge = y >= y_limit;
  const Expr mx = select(y_huge, y, x);
  const Expr limit = select(y_huge, y_limit, x.like(safe_max));
  const Expr x_over_y = select(y_huge & !equals(y, HUGE_VAL), x / y, 0.0);
  const Expr im_huge =
      x.like(std::log(2.0)) + log(mx) + 0.5 * log1p(x_over_y * x_over_y);

  // a - 1, by the form that does not cancel.
  const Expr tiny_y = (y < safe_min) & (x < 1);
  const Expr half_yy = 0.5 * yy;
  const Expr first = half_yy / rpxp1;
  const Expr am1 =
      select(tiny_y, -(xp1 * xm1 / (a + 1)),
             select(x >= 1, first + 0.5 * spxm1,
                    select(a <= 1.5, first + half_yy / smxm1, a - 1)));
  const Expr root = sqrt(am1 * (a + 1));
  const Expr im_normal = select(tiny_y, y / root, log1p(am1 + root));
  const Expr im = select(mx >= limit, im_huge, im_normal);
  return done(b, {complex(re, im).value()});
}

namespace {

Expr kernel(Expr z) {
  return {z.builder(), z.builder().unary(OpCode::kChloAsinAcosKernel, z.value())};
}

// x with its sign turned where `by` is negative.
Expr with_sign_of(Expr x, Expr by) { return select(by < 0.0, -x, x); }

}  // namespace

Values chlo_asin(Builder& b, const Instruction& op) {
  if (!is_complex_op(op)) {
    return in_working_type(b, op, [](const std::vector<Expr>& x) {
      return 2 * atan2(x[0], 1 + sqrt((1 - x[0]) * (1 + x[0])));
    });
  }
  const Expr z(b, op.operand(0));
  const Expr w = kernel(z);
  return done(b, {complex(atan2(real_part(z), real_part(w)),
                          with_sign_of(imaginary_part(w), imaginary_part(z)))
                      .value()});
}

Values chlo_acos(Builder& b, const Instruction& op) {
  if (!is_complex_op(op)) {
    return in_working_type(b, op, [](const std::vector<Expr>& x) {
      return atan2(sqrt((1 - x[0]) * (1 + x[0])), x[0]);
    });
  }
  const Expr z(b, op.operand(0));
  const Expr w = kernel(z);
  const Expr im = imaginary_part(w);
  return done(b, {complex(atan2(real_part(w), real_part(z)),
                          select(imaginary_part(z) < 0.0, im, -im))
                      .value()});
}

Values chlo_acosh(Builder& b, const Instruction& op) {
  if (!is_complex_op(op)) {
    return in_working_type(b, op, [](const std::vector<Expr>& v) {
      const Expr x = v[0];
      const Expr root = sqrt(x - 1);
      const Expr general = log1p(root * (sqrt(x + 1) + root));
      return select(x >= largest(x) / 2, std::log(2.0) + log(x), general);
    });
  }
  const Expr z(b, op.operand(0));
  const Expr w = kernel(z);
  return done(b, {complex(imaginary_part(w), with_sign_of(atan2(real_part(w), real_part(z)),
                                                          imaginary_part(z)))
                      .value()});
}

Values chlo_asinh(Builder& b, const Instruction& op) {
  if (!is_complex_op(op)) {
    return in_working_type(b, op, [](const std::vector<Expr>& v) {
      const Expr x = v[0];
      const Expr a = abs(x);
      const Expr square = a * a;
      const Expr general = log1p(a + square / (1 + sqrt(1 + square)));
      const Expr huge = std::log(2.0) + log(a);
      return sign(x) * select(a >= std::sqrt(largest(x)), huge, general);
    });
  }
  // asinh(z) = -i asin(i z)
  const Expr z(b, op.operand(0));
  const Expr w = kernel(complex(-imaginary_part(z), real_part(z)));
  return done(b, {complex(with_sign_of(imaginary_part(w), real_part(z)),
                          atan2(imaginary_part(z), real_part(w)))
                      .value()});
}

Values chlo_atan(Builder& b, const Instruction& op) {
  if (!is_complex_op(op)) {
    return in_working_type(
        b, op, [](const std::vector<Expr>& x) { return atan2(x[0], x[0].like(1)); });
  }
  // atan(z) = -i atanh(i z)
  const Expr z(b, op.operand(0));
  const Expr rotated = complex(-imaginary_part(z), real_part(z));
  const Expr w(b, b.unary(OpCode::kChloAtanh, rotated.value()));
  return done(b, {complex(imaginary_part(w), -real_part(w)).value()});
}

namespace {

// Re atanh z = log1p(4 x / ((1 - x)^2 + y^2)) / 4, Im atanh z = atan2(2 y, (1 - x)(1 + x) - y^2) / 2
// for x >= 0, the quotient taken in forms that neither overflow nor underflow.
Expr complex_atanh(Expr z) {
  const Expr x = real_part(z);
  const Expr y = imaginary_part(z);
  const Expr ax = abs(x);
  const Expr ay = abs(y);
  // Just above 2 / epsilon; its square is still finite.
  const double bound = x.type() == ElementType::kF64 ? 9007199254740994.0 : 16777218.0;
  const Expr safe = (ax < bound * bound) & (ay < bound * bound);
  const Expr one_minus = 1 - ax;
  const Expr yy = y * y;
  const Expr infinite = equals(ax, HUGE_VAL) | equals(ay, HUGE_VAL);
  const Expr both_large = 1 / (ax / y + y / ax) / y;
  const Expr quotient =
      select(safe, ax / (one_minus * one_minus + yy),
             select(ay * bound < ax, 1 / ax, select(infinite, 0.0, both_large)));
  const Expr sign_x = select(x >= 0.0, x.like(1), x.like(-1));
  const Expr re = sign_x * log1p(4 * quotient) * 0.25;
  const Expr pi = select(y >= 0.0, y.like(1), y.like(-1)) * M_PI;
  const Expr im = 0.5 * select(safe, atan2(y + y, one_minus * (1 + ax) - yy), pi);
  return complex(re, im);
}

}  // namespace

Values chlo_atanh(Builder& b, const Instruction& op) {
  if (is_complex_op(op)) return done(b, {complex_atanh(Expr(b, op.operand(0))).value()});
  return in_working_type(b, op, [](const std::vector<Expr>& v) {
    const Expr x = v[0];
    const Expr inside = 0.5 * (log1p(x) - log1p(-x));
    return select(abs(x) > 1, std::nan(""), inside);
  });
}

namespace {

// (e^x + sign e^-x) / 2 as e^(x - log 2) + sign e^(-x - log 2), which overflows only with the result.
Expr half_exponentials(Expr x, bool add) {
  const Expr up = exp(x + std::log(0.5));
  const Expr down = exp(std::log(0.5) - x);
  return add ? up + down : up - down;
}

Expr real_sinh(Expr x) {
  // Near 0 the exponentials cancel: (e + e / (e + 1)) / 2 with e = expm1(x).
  const Expr e = expm1(x);
  const Expr small = 0.5 * (e + e / (e + 1));
  return select(abs(x) < 1, small, half_exponentials(x, false));
}

}  // namespace

Values chlo_cosh(Builder& b, const Instruction& op) {
  if (!is_complex_op(op)) {
    return in_working_type(
        b, op, [](const std::vector<Expr>& x) { return half_exponentials(x[0], true); });
  }
  // cosh(x + i y) = cosh x cos y + i sinh x sin y
  const Expr z(b, op.operand(0));
  const Expr x = real_part(z);
  const Expr y = imaginary_part(z);
  return done(b, {complex(half_exponentials(x, true) * cos(y), real_sinh(x) * sin(y)).value()});
}

Values chlo_sinh(Builder& b, const Instruction& op) {
  if (!is_complex_op(op)) {
    return in_working_type(b, op, [](const std::vector<Expr>& x) { return real_sinh(x[0]); });
  }
  // sinh(x + i y) = sinh x cos y + i cosh x sin y
  const Expr z(b, op.operand(0));
  const Expr x = real_part(z);
  const Expr y = imaginary_part(z);
  return done(b, {complex(real_sinh(x) * cos(y), half_exponentials(x, true) * sin(y)).value()});
}

Values chlo_tan(Builder& b, const Instruction& op) {
  return done(b, {b.unary(OpCode::kTan, op.operand(0))});
}

}  // namespace tenon::hlo::expand
