// The gamma family: lgamma, digamma, polygamma and the Hurwitz zeta function.
//
// lgamma and digamma by C. Lanczos, "A precision approximation of the gamma function" (1964), with
// g = 7 and nine terms in f32, for f64 see chlo_gamma_f64.cpp; zeta by the Euler-Maclaurin formula,
// F. Johansson, "Rigorous high-precision computation of the Hurwitz zeta function and its
// derivatives" (2015), formula 5.
#include <cmath>
#include <limits>
#include <numbers>

#include "hlo/expand/expand_math.h"

namespace tenon::hlo::expand {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

constexpr double kLanczosG = 7;
constexpr double kLanczosBase = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};

// base + sum of c_k / (z + k), the series A of gamma(z + 1) = sqrt(2 pi) t^(z + 1/2) e^-t A(z) with
// t = z + g + 1/2.
Expr lanczos_series(Expr z) {
  Expr sum = z.like(kLanczosBase);
  double k = 0;
  for (const double c : kLanczos) sum = sum + c / (z + ++k);
  return sum;
}

Expr lanczos_log_t(Expr z) { return std::log(kLanczosG + 0.5) + log1p(z / (kLanczosG + 0.5)); }

// Distance of |x| to the nearest integer, exact.
Expr distance_to_integer(Expr x) {
  const Expr a = abs(x);
  const Expr fraction = a - floor(a);
  return select(fraction > 0.5, 1 - fraction, fraction);
}

}  // namespace

// f32 keeps to the series around the zeros too, as its reference results do.
Expr lgamma(Expr x) {
  if (is_f64(x)) return lgamma_f64(x);
  // Below 1/2 by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x).
  const Expr reflect = x < 0.5;
  const Expr z = select(reflect, -x, x - 1);
  const Expr t = z + (kLanczosG + 0.5);
  const Expr log_t = lanczos_log_t(z);
  // (z + 1/2) log t - t, factored so that it overflows only when the result does.
  const Expr r = (z + 0.5 - t / log_t) * log_t;
  const Expr at_z = std::log(2 * kPi) / 2 + r + log(lanczos_series(z));
  // The distance makes sin(pi x) exact at the poles, where the logarithm is -inf and wins.
  const Expr distance = distance_to_integer(x);
  // pi times a subnormal would be rounded.
  const Expr log_sine =
      select(distance < min_normal(x), log(distance) + std::log(kPi), log(sin(distance * kPi)));
  const Expr reflected = select(is_finite(log_sine), std::log(kPi) - log_sine - at_z, -log_sine);
  return select(abs(x) == kInfinity, kInfinity, select(reflect, reflected, at_z));
}

Expr digamma(Expr x) {
  if (is_f64(x)) return digamma_f64(x);
  const Expr reflect = x < 0.5;
  const Expr z = select(reflect, -x, x - 1);
  Expr a = z.like(kLanczosBase);
  Expr derivative = z.like(0);
  double k = 0;
  for (const double c : kLanczos) {
    const Expr term = z + ++k;
    derivative = derivative - c / (term * term);
    a = a + c / term;
  }
  const Expr t = z + (kLanczosG + 0.5);
  const Expr at_z = lanczos_log_t(z) + derivative / a - kLanczosG / t;
  // psi(x) = psi(1 - x) - pi cot(pi x), with x moved into [-1/2, 1/2].
  const Expr angle = (x + abs(floor(x + 0.5))) * kPi;
  const Expr reflected = at_z - kPi * cos(angle) / sin(angle);
  const Expr is_pole = (x <= 0) & (x == floor(x));
  return select(is_pole, kNan, select(reflect, reflected, at_z));
}

Expr zeta(Expr s, Expr q) {
  // The first ten terms, then the integral, half a term and twelve terms with Bernoulli numbers:
  // (2 k)! / B_2k for k from 12 down to 1.
  constexpr double kZeta[] = {-7.1661652561756670113e18,
                              1.8152105401943546773e17,
                              -4.5979787224074726105e15,
                              1.1646782814350067249e14,
                              -2.950130727918164224e12,
                              7.47242496e10,
                              -1.8924375803183791606e9,
                              47900160.0,
                              -1209600.0,
                              30240.0,
                              -720.0,
                              12.0};
  constexpr int kTerms = 12;
  const Expr minus_s = -s;
  Expr sum = pow(q, minus_s);
  for (int k = 1; k < 10; ++k) sum = sum + pow(q + k, minus_s);
  const Expr a = q + 10;
  const Expr power = pow(a, minus_s);
  const Expr integral = power * a / (s - 1);
  const Expr inverse_square = 1 / (a * a);
  Expr tail = q.like(0);
  for (int i = 0; i < kTerms - 1; ++i) {
    const double k = 2 * (kTerms - 1 - i);
    tail = (s + k) * (s + (k - 1)) * (inverse_square * (tail + 1 / kZeta[i]));
  }
  tail = power * (0.5 + s / a * (tail + 1 / kZeta[kTerms - 1]));
  Expr result = select(power == 0, sum, sum + integral + tail);

  // At integers q <= 0 there are poles, with a limit when s is even; between them the terms are
  // defined only for integers s.
  const Expr s_is_integer = s == floor(s);
  const Expr q_is_integer = q == floor(q);
  const Expr s_is_even = s_is_integer & (remainder(s, s.like(2)) == 0);
  result = select((s < 1) | ((q <= 0) & !s_is_integer), kNan, result);
  result = select((q <= 0) & q_is_integer, select(s_is_even, s.like(kInfinity), kNan), result);
  return select(s == 1, kInfinity, result);
}

namespace {

// n! as gamma(m) / ((n + 1) … (n + 8)) with m = n + 9, and gamma(m) by Stirling's formula from
// powers of exact arguments: exp(lgamma(m)) would lose as many bits as the logarithm has before the
// point.
Expr factorial(Expr n) {
  const Expr m = n + 9;
  Expr product = n + 1;
  for (int k = 2; k < 9; ++k) product = product * (n + k);
  const Expr root = pow(m, (m - 0.5) * 0.5);
  const Expr rest = std::sqrt(2 * kPi) * exp(stirling_correction(m)) / product;
  const double last = is_f64(n) ? 170 : 34;
  return select(n > last, kInfinity, root * exp(-m) * rest * root);
}

Expr polygamma(Expr n, Expr x) {
  // (-1)^(n + 1) n! zeta(n + 1, x)
  const Expr minus_sign = 2 * remainder(n, n.like(2)) - 1;
  const Expr result = minus_sign * factorial(n) * zeta(n + 1, x);
  const Expr is_natural = (n >= 0) & (n == floor(n));
  return select(is_natural, select(n == 0, digamma(x), result), kNan);
}

}  // namespace

Values chlo_digamma(Builder& b, const Instruction& op) {
  return expand_real(b, op, [](auto x) { return digamma(x[0]); });
}

Values chlo_lgamma(Builder& b, const Instruction& op) {
  return expand_real(b, op, [](auto x) { return lgamma(x[0]); });
}

Values chlo_polygamma(Builder& b, const Instruction& op) {
  return expand_real(b, op, [](auto x) { return polygamma(x[0], x[1]); });
}

Values chlo_zeta(Builder& b, const Instruction& op) {
  return expand_real(b, op, [](auto x) { return zeta(x[0], x[1]); });
}

}  // namespace tenon::hlo::expand
