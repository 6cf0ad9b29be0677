// lgamma, digamma, zeta, polygamma.
//
// lgamma and digamma: Lanczos, "A precision approximation of the gamma function" (SIAM J. Numer. Anal.
// B 1, 1964) with g = 7 and 9 coefficients. zeta: the Euler-Maclaurin formula, Johansson, "Rigorous
// high-precision computation of the Hurwitz zeta function" (Numer. Algorithms 69, 2015), formula (5).
#include <cmath>

#include "hlo/expand/expression.h"

namespace tenon::hlo::expand {
namespace {

constexpr double kLanczosG = 7;
constexpr double kLanczosBase = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};

// What lgamma and digamma have in common: z = x - 1, or -x where the reflection formula is needed.
struct Lanczos {
  Expr reflected;  // pred: x < 1/2
  Expr z;
  Expr t;      // z + g + 1/2
  Expr log_t;
  Expr a;      // the series
  Expr a_derivative;
};

Lanczos lanczos(Expr x) {
  const Expr reflected = x < 0.5;
  const Expr z = select(reflected, -x, x - 1);
  Expr a = x.like(kLanczosBase);
  Expr derivative = x.like(0);
  for (size_t k = 0; k < std::size(kLanczos); ++k) {
    const Expr term = z + static_cast<double>(k + 1);
    derivative = derivative - kLanczos[k] / (term * term);
    a = a + kLanczos[k] / term;
  }
  const Expr t = z + (kLanczosG + 0.5);
  // log1p of the quotient is more exact than the logarithm of t.
  const Expr log_t = std::log(kLanczosG + 0.5) + log1p(z / (kLanczosG + 0.5));
  return {reflected, z, t, log_t, a, derivative};
}

Expr lgamma_of(Expr x) {
  const Lanczos l = lanczos(x);
  // (z + 1/2) log t - t, arranged so that it overflows only with the result.
  const Expr r = (l.z + 0.5 - l.t / l.log_t) * l.log_t;
  const Expr direct = (std::log(2.0) + std::log(M_PI)) / 2 + r + log(l.a);
  // log pi - lgamma(1 - x) - log |sin(pi x)|, by the distance to the nearest integer.
  const Expr magnitude = abs(x);
  const Expr fraction = magnitude - floor(magnitude);
  const Expr distance = select(fraction > 0.5, 1 - fraction, fraction);
  const Expr denominator = log(sin(M_PI * distance));
  const Expr mirrored =
      select(is_finite(denominator), std::log(M_PI) - denominator - direct, -denominator);
  const Expr value = select(l.reflected, mirrored, direct);
  return select(equals(magnitude, HUGE_VAL), HUGE_VAL, value);
}

Expr digamma_of(Expr x) {
  const Lanczos l = lanczos(x);
  const Expr direct = l.log_t + l.a_derivative / l.a - kLanczosG / l.t;
  // digamma(1 - x) - pi cot(pi x), x moved by an integer into [-1/2, 1/2].
  const Expr moved = x + abs(floor(x + 0.5));
  const Expr angle = M_PI * moved;
  const Expr mirrored = direct - M_PI * cos(angle) / sin(angle);
  const Expr value = select(l.reflected, mirrored, direct);
  const Expr pole = (x <= 0.0) & equals(x, floor(x));
  return select(pole, std::nan(""), value);
}

// The factors (2k)! / B_2k of the Euler-Maclaurin tail, k = 12 … 1.
constexpr double kZetaFactors[] = {
    -7.1661652561756670113e18, 1.8152105401943546773e17, -4.5979787224074726105e15,
    1.1646782814350067249e14,  -2.950130727918164224e12, 7.47242496e10,
    -1.8924375803183791606e9,  47900160.0,               -1209600.0,
    30240.0,                   -720.0,                   12.0};

Expr zeta_of(Expr x, Expr q) {
  constexpr int kTerms = 12;
  constexpr int kSummed = 9;
  Expr a = q;
  Expr power_sum = pow(q, -x);
  for (int i = 0; i < kSummed; ++i) {
    a = a + 1;
    power_sum = power_sum + pow(a, -x);
  }
  a = a + 1;
  const Expr power = pow(a, -x);
  const Expr integral = power * a / (x - 1);
  const Expr inverse_square = 1 / (a * a);
  Expr tail = q.like(0);
  for (int i = 0; i + 1 < kTerms; ++i) {
    const double k = 2.0 * kTerms - 2 - 2 * i;
    tail = (x + k) * (x + (k - 1)) * (inverse_square * (tail + 1 / kZetaFactors[i]));
  }
  const Expr correction =
      power * (0.5 + x / a * (1 / kZetaFactors[kTerms - 1] + tail));
  const Expr accurate = power_sum + integral + correction;
  // Where the next power adds nothing the sum is exact, and the correction may be 0 times infinity.
  const double epsilon = q.type() == ElementType::kF64 ? 0x1p-53 : 0x1p-24;
  Expr value = select(abs(power) < abs(power_sum) * (epsilon / 16), power_sum, accurate);

  const double nan = std::nan("");
  value = select(x < 1, nan, value);
  const Expr not_positive = q <= 0.0;
  const Expr x_integer = equals(x, floor(x));
  value = select(not_positive & !x_integer, nan, value);
  const Expr even = x_integer & equals(remainder(x, x.like(2)), 0.0);
  const Expr pole = not_positive & equals(q, floor(q));
  value = select(pole, select(even, x.like(HUGE_VAL), x.like(nan)), value);
  return select(equals(x, 1), HUGE_VAL, value);
}

}  // namespace

Values chlo_lgamma(Builder& b, const Instruction& op) {
  return in_working_type(b, op, [](const std::vector<Expr>& x) { return lgamma_of(x[0]); });
}

Values chlo_digamma(Builder& b, const Instruction& op) {
  return in_working_type(b, op, [](const std::vector<Expr>& x) { return digamma_of(x[0]); });
}

Values chlo_zeta(Builder& b, const Instruction& op) {
  return in_working_type(b, op, [](const std::vector<Expr>& x) { return zeta_of(x[0], x[1]); });
}

// (-1)^(n+1) n! zeta(n + 1, x) for natural n > 0, digamma for 0.
Values chlo_polygamma(Builder& b, const Instruction& op) {
  return in_working_type(b, op, [](const std::vector<Expr>& v) {
    const Expr n = v[0];
    const Expr x = v[1];
    const Expr sign_factor = 2 * remainder(n, n.like(2)) - 1;
    const Expr next = n + 1;
    const Expr general = sign_factor * exp(lgamma_of(next)) * zeta_of(next, x);
    const Expr value = select(equals(n, 0.0), digamma_of(x), general);
    const Expr natural = equals(n, floor(n)) & (n >= 0.0);
    return select(natural, value, std::nan(""));
  });
}

}  // namespace tenon::hlo::expand
