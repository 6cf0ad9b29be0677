// The Hurwitz zeta function, and the polygamma functions computed from it.

#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

// B(2k) / (2k)!
constexpr double kBernoulliF32[] = {-5.2841901386874932e-10, 2.0876756987868099e-8,
                                    -8.2671957671957672e-7,  3.3068783068783069e-5,
                                    -1.3888888888888889e-3,  8.3333333333333333e-2};
constexpr double kBernoulliF64[] = {
    -1.3954464685812523341e-19, 5.5090028283602295152e-18,  -2.174868698558061873e-16,
    8.5860620562778445641e-15,  -3.3896802963225828668e-13, 1.3382536530684678833e-11,
    -5.2841901386874931848e-10, 2.0876756987868098979e-8,   -8.2671957671957671958e-7,
    0.000033068783068783068783, -0.0013888888888888888889,  0.083333333333333333333};

// The sum of ((q + k) unit)^-x over k >= 0, for q >= 0.5 and x > 1: the first terms, then the
// formula of Euler and Maclaurin, (5) in F. Johansson, "Rigorous high-precision computation of the
// Hurwitz zeta function and its derivatives", Numerical Algorithms 69 (2015) 253-270.
Expr zeta_of_positive(const Expr& x, const Expr& q, const Expr& unit) {
  const int first_terms = q.type() == ElementType::kF64 ? 10 : 6;
  const std::span<const double> bernoulli = for_type(q, kBernoulliF32, kBernoulliF64);
  const Expr exponent = -x;
  const Expr end = q + double(first_terms);
  const Expr end_power = pow(end * unit, exponent);
  Expr sum = x.constant(0);
  for (int k = first_terms - 1; k >= 0; --k) sum = sum + pow((q + double(k)) * unit, exponent);

  const Expr inverse_square = 1.0 / (end * end);
  Expr series = x.constant(bernoulli[0]);
  for (size_t i = 1; i < bernoulli.size(); ++i) {
    const auto j = 2 * static_cast<double>(bernoulli.size() - i);
    series = series * ((x + (j - 1)) * (x + j) * inverse_square) + bernoulli[i];
  }
  const Expr rest = end_power * (end / (x - 1.0) + (0.5 + x / end * series));
  // For large x the series diverges, but the rest is then below the rounding error.
  const Expr is_done = end_power <= sum * for_type(x, 0x1p-36, 0x1p-66);
  return select(is_done, sum, sum + rest);
}

// unit^-x zeta(x, q). For q < 0, where x is an integer: the sum over all integers is a sum over
// positive numbers in both directions from the fraction of q, and the terms before q are a zeta of
// 1 - q.
Expr zeta(const Expr& x, const Expr& q, const Expr& unit) {
  const Expr is_negative_q = q < 0.0;
  const Expr near = select(is_negative_q, q - round(q), q);
  const Expr above = pow(near * unit, -x) + zeta_of_positive(x, 1.0 + near, unit);
  const Expr below = zeta_of_positive(x, 1.0 - near, unit) - zeta_of_positive(x, 1.0 - q, unit);
  const Expr half = 0.5 * x;
  const Expr is_even = half == floor(half);
  const Expr two_sided = above + select(is_even, below, -below);
  Expr result = select(is_negative_q, two_sided, above);

  const Expr is_at_pole = (q <= 0.0) & (q == floor(q));
  const Expr is_undefined = (x < 1.0) | ((q <= 0.0) & (x != floor(x)));
  result = select(is_at_pole, select(is_even, kInfinity, x.constant(kNan)), result);
  result = select(is_undefined, kNan, result);
  return select(x == 1.0, kInfinity, result);
}

Expr zeta(const Expr& x, const Expr& q) { return zeta(x, q, q.constant(1)); }

constexpr double kStirling[] = {6.4102564102564102564e-3, -1.9175269175269175269e-3,
                                8.4175084175084175084e-4, -5.9523809523809523810e-4,
                                7.9365079365079365079e-4, -2.7777777777777777778e-3,
                                8.3333333333333333333e-2};

// (-1)^(n + 1) n! zeta(n + 1, x). Factorials are exact up to 10, then computed by Stirling's
// formula, in which m^m e^-m is the square of a number that is exact in its exponents, because m =
// n + 1 is an integer. The unit of zeta, a power of two near x, is multiplied into that number, so
// that neither factor overflows alone.
Expr polygamma_from_one(const Expr& n, const Expr& x) {
  constexpr int kExact = 10;
  constexpr double kTwoPi = 6.28318530717958647693;
  Expr product = n.constant(1);
  for (int k = 2; k <= kExact; ++k) {
    product = product * select(n >= double(k), double(k), n.constant(1));
  }
  const Expr is_exact = n <= double(kExact);
  const Expr m = n + 1.0, half = 0.5 * m, inverse = 1.0 / m;
  const Expr correction = exp(inverse * polynomial(inverse * inverse, kStirling));
  const Expr factor = select(is_exact, product, sqrt(kTwoPi * inverse) * correction);

  const Expr limited = max(min(x, x.constant(0x1p60)), x.constant(1));
  const Expr unit = 1.0 / rounded_to_bits(limited, 0);
  const Expr power = pow(select(is_exact, 1.0, m) * unit, half);
  const Expr root = select(is_exact, power, power * exp(-half));
  const Expr magnitude = factor * root * zeta(m, x, unit) * root;
  return select(half == floor(half), magnitude, -magnitude);
}

Expr polygamma(const Expr& n, const Expr& x) {
  const Expr is_undefined = (n < 0.0) | (n != floor(n));
  return select(is_undefined, kNan, select(n == 0.0, digamma(x), polygamma_from_one(n, x)));
}

}  // namespace

Values chlo_polygamma(Builder& b, const Instruction& op) { return elementwise(b, op, polygamma); }
Values chlo_zeta(Builder& b, const Instruction& op) { return elementwise(b, op, zeta); }

}  // namespace tenon::hlo::decomposition
