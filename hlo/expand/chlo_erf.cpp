// The error function, its complement and its inverse.
//
// Coefficients without a source named are interpolations at Chebyshev nodes, computed with 60
// digits; their relative errors are below a tenth of a unit in the last place.
#include <limits>

#include "hlo/expand/expand_util.h"

namespace tenon::hlo::expand {
namespace {

// erf(x) / x in x^2, for |x| <= 1.
constexpr double kErfF32[] = {
    7.875875063e-5, -0.0008016864287, 0.005189087423, -0.02685421201,
    0.1128359472,   -0.3761262667,    1.128379166,
};
constexpr double kErfF64[] = {
    5.9571761477489114044e-11, -1.137284885679167367e-9,   1.4659775274047435814e-8,
    -1.6350312701054695011e-7, 1.6461000484121368033e-6,   -0.000014925595266831181565,
    0.00012055331111642710923, -0.00085483269808337899052, 0.0052239776248180144673,
    -0.026866170645076793248,  0.11283791670954878666,     -0.37612638903183748056,
    1.1283791670955125738,
};

Expr erf_near_zero(const Expr& x) { return x * polynomial(x * x, for_type(x, kErfF32, kErfF64)); }

// (1 + 2 x) exp(x^2) erfc(x) in (x - 3.75) / (x + 3.75), for x >= 0.5: the form of M. M. Shepherd
// and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf",
// Math. Comp. 36 (1981) 249-253.
constexpr double kErfcF32[] = {
    0.0008163003604, 0.001837575889, -0.009995169835, 0.02827258653, -0.05865127054, 0.09232232842,
    -0.1088069365,   0.08227550158,  0.003585498502,  -0.1402405763, 1.23751263,
};
constexpr double kErfcF64[] = {
    2.5497974162237731907e-8,    1.3636599340000019505e-8,   -2.4295873315965596493e-7,
    -4.5544527553511102135e-8,   1.7409856628927415115e-6,   -9.8168604262646486467e-7,
    -0.000011439743571748160168, 0.000022387738277840556519, 0.000051647976582843000014,
    -0.00029015503427679505792,  0.00029371383562380639664,  0.001755626015647872785,
    -0.0097465795716029983596,   0.028362277402325206195,    -0.058693398589285265677,
    0.09230432116130568992,      -0.10880393014173435753,    0.082276738490121670595,
    0.0035854154854637445437,    -0.14024059858554678883,    1.2375126308378275826,
};

// erfc(x) for x >= 0.5. An error of x^2 would be multiplied by its size in the exponential, so that
// x^2 is taken apart: z^2 is exact, x^2 - z^2 small.
Expr erfc_of_positive(const Expr& x_in) {
  const Expr x = min(x_in, x_in.constant(28));  // erfc is zero long before
  const Expr z = rounded_to_bits(x, x.type() == ElementType::kF64 ? 25 : 11);
  const Expr t = (x - 3.75) / (x + 3.75);
  const Expr scaled = polynomial(t, for_type(x, kErfcF32, kErfcF64)) / (1.0 + 2.0 * x);
  return exp(-z * z) * (exp((z - x) * (z + x)) * scaled);
}

Expr erf(const Expr& x) {
  const Expr a = abs(x);
  return select(a < 1.0, erf_near_zero(x), sign(x) * (1.0 - erfc_of_positive(a)));
}

Expr erfc(const Expr& x) {
  const Expr a = abs(x);
  const Expr far = erfc_of_positive(a);
  return select(a < 0.5, 1.0 - erf_near_zero(x), select(x < 0.0, 2.0 - far, far));
}

// Quantiles of the normal distribution by M. J. Wichura, "Algorithm AS 241", Applied Statistics 37
// (1988) 477-484: erf_inv(x) is that of (1 + x) / 2, over the root of 2. Three ranges, each a
// rational function.
struct Rational {
  double numerator[8];
  double denominator[8];
};

// Of x^2, times x, for |x| <= 0.85; in 0.180625 - x^2 / 4.
constexpr Rational kCentral = {
    {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0},
    {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0}};
// In r - 1.6, r = sqrt(-log((1 - |x|) / 2)) <= 5.
constexpr Rational kMiddle = {
    {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0},
    {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0}};
// In r - 5, r > 5: no f32 is there.
constexpr Rational kTail = {
    {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0},
    {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0}};

Expr evaluate(const Rational& r, const Expr& x) {
  return polynomial(x, r.numerator) / polynomial(x, r.denominator);
}

constexpr double kSqrtOfHalf = 0.70710678118654752440;

Expr erf_inv(const Expr& x) {
  const Expr a = abs(x);
  const Expr central = 0.5 * x * evaluate(kCentral, 0.180625 - 0.25 * (x * x));
  const Expr r = sqrt(-log(0.5 * (1.0 - a)));
  Expr outer = evaluate(kMiddle, r - 1.6);
  if (x.type() == ElementType::kF64) outer = select(r > 5.0, evaluate(kTail, r - 5.0), outer);
  const Expr result = kSqrtOfHalf * select(a <= 0.85, central, sign(x) * outer);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return select(a == 1.0, sign(x) * kInfinity, result);
}

}  // namespace

Values chlo_erf(Builder& b, const Instruction& op) { return elementwise(b, op, erf); }
Values chlo_erfc(Builder& b, const Instruction& op) { return elementwise(b, op, erfc); }
Values chlo_erf_inv(Builder& b, const Instruction& op) { return elementwise(b, op, erf_inv); }

}  // namespace tenon::hlo::expand
