// lgamma and digamma of f64, accurate around the zeros at 1, 2 and 1.46, where Lanczos' series
// cancels.
//
// lgamma after Sun's fdlibm (e_lgamma_r.c, 1993), digamma on [1, 2] after J. Maddock (Boost.Math,
// 2006), with their coefficients.
#include <limits>
#include <numbers>

#include "hlo/expand/expand_math.h"

namespace tenon::hlo::expand {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

// Where gamma is least: its place, and lgamma there as the difference of two doubles.
constexpr double kMinimumAt = 1.46163214496836224576e+00;
constexpr double kMinimum = -1.21486290535849611461e-01;
constexpr double kMinimumTail = -3.63867699703950536541e-18;
// lgamma(2 - y) + y / 2, even and odd powers.
constexpr double kBelowTwoEven[] = {2.52144565451257326939e-05, 2.20862790713908385557e-04,
                                    1.19270763183362067845e-03, 7.38555086081402883957e-03,
                                    6.73523010531292681824e-02, 7.72156649015328655494e-02};
constexpr double kBelowTwoOdd[] = {4.48640949618915160150e-05, 1.08011567247583939954e-04,
                                   5.10069792153511336608e-04, 2.89051383673415629091e-03,
                                   2.05808084325167332806e-02, 3.22467033424113591611e-01};
// (lgamma(minimum + y) - lgamma(minimum)) / y^2.
constexpr double kAtMinimum[] = {
    3.35529192635519073543e-04,  -3.12754168375120860518e-04, 3.15632070903625950361e-04,
    -5.38595305356740546715e-04, 8.81081882437654011382e-04,  -1.40346469989232843813e-03,
    2.25964780900612472250e-03,  -3.68452016781138256760e-03, 6.10053870246291332635e-03,
    -1.03142241298341437450e-02, 1.79706750811820387126e-02,  -3.27885410759859649565e-02,
    6.46249402391333854778e-02,  -1.47587722994593911752e-01, 4.83836122723810047042e-01};
// (lgamma(1 + y) + y / 2) / y.
constexpr double kAboveOneP[] = {1.33810918536787660377e-02, 2.28963728064692451092e-01,
                                 9.77717527963372745603e-01, 1.45492250137234768737e+00,
                                 6.32827064025093366517e-01, -7.72156649015328655494e-02};
constexpr double kAboveOneQ[] = {3.21709242282423911810e-03, 1.04222645593369134254e-01,
                                 7.69285150456672783825e-01, 2.12848976379893395361e+00,
                                 2.45597793713041134822e+00, 1};
// (lgamma(2 + y) - y / 2) / y.
constexpr double kAboveTwoP[] = {3.19475326584100867617e-05, 1.84028451407337715652e-03,
                                 2.66422703033638609560e-02, 1.46350472652464452805e-01,
                                 3.25778796408930981787e-01, 2.14982415960608852501e-01,
                                 -7.72156649015328655494e-02};
constexpr double kAboveTwoQ[] = {7.32668430744625636189e-06,
                                 7.77942496381893596434e-04,
                                 1.86459191715652901344e-02,
                                 1.71933865632803078993e-01,
                                 7.21935547567138069525e-01,
                                 1.39200533467621045958e+00,
                                 1};
// Stirling's series in 1 / x^2, without its constant term.
constexpr double kStirlingBase = 4.18938533204672725052e-01;
constexpr double kStirling[] = {-1.63092934096575273989e-03, 8.36339918996282139126e-04,
                                -5.95187557450339963135e-04, 7.93650558643019558500e-04,
                                -2.77777777728775536470e-03, 8.33333333333329678849e-02};

// digamma(x) = (x - root) (kDigammaBase + P(x - 1) / Q(x - 1)) on [1, 2], the root in three parts.
constexpr double kDigammaRoot[] = {1569415565.0 / 1073741824.0,
                                   (381566830.0 / 1073741824.0) / 1073741824.0,
                                   0.9016312093258695918615325266959189453125e-19};
constexpr double kDigammaBase = 0.99558162689208984;
constexpr double kDigammaP[] = {-0.0020713321167745952, -0.045251321448739056, -0.28919126444774784,
                                -0.65031853770896507,   -0.32555031186804491,  0.25479851061131551};
constexpr double kDigammaQ[] = {-0.55789841321675513e-6,
                                0.0021284987017821144,
                                0.054151797245674225,
                                0.43593529692665969,
                                1.4606242909763515,
                                2.0767117023730469,
                                1.0};
// B_2k / 2k, k from 7 down.
constexpr double kDigammaSeries[] = {1.0 / 12,  -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                     1.0 / 252, -1.0 / 120,     1.0 / 12};

// lgamma of 0 < a < 2.
Expr lgamma_below_two(Expr a) {
  // lgamma(a) = lgamma(a + 1) - log(a) moves (0, 0.9] up; y is taken from `a` itself, not from a
  // + 1.
  const Expr is_low = a <= 0.9;
  const Expr base = select(is_low, -log(a), 0);
  const Expr down = select(is_low, 1 - a, 2 - a);
  const Expr square = down * down;
  const Expr below_two = down * polynomial(square, kBelowTwoEven) +
                         square * polynomial(square, kBelowTwoOdd) - 0.5 * down;
  const Expr offset = select(is_low, a - (kMinimumAt - 1), a - kMinimumAt);
  const Expr at_minimum =
      kMinimum + (offset * offset * polynomial(offset, kAtMinimum) - kMinimumTail);
  const Expr up = select(is_low, a, a - 1);
  const Expr above_one = up * polynomial(up, kAboveOneP) / polynomial(up, kAboveOneQ) - 0.5 * up;
  const Expr place = select(is_low, a + 1, a);
  return base + select(place >= 1.7316, below_two, select(place >= 1.23164, at_minimum, above_one));
}

// lgamma of 2 <= a < 8: down to [2, 3), the product of the factors under one logarithm.
Expr lgamma_below_eight(Expr a) {
  const Expr y = a - floor(a);
  Expr product = select(a >= 3, y + 2, 1);
  for (int k = 3; k < 7; ++k) product = product * select(a >= k + 1, y + k, 1);
  return log(product) + (0.5 * y + y * polynomial(y, kAboveTwoP) / polynomial(y, kAboveTwoQ));
}

Expr lgamma_stirling(Expr a) {
  return (a - 0.5) * (log(a) - 1) + (kStirlingBase + stirling_correction(a));
}

Expr digamma_of_positive(Expr x) {
  const Expr large = log(x) - 0.5 / x - polynomial(1 / (x * x), kDigammaSeries) / (x * x);
  // psi(x + 1) = psi(x) + 1 / x moves the rest into [1, 2].
  const Expr is_low = x < 1;
  Expr y = select(is_low, x + 1, x);
  Expr sum = select(is_low, -1 / x, 0);
  for (int k = 0; k < 8; ++k) {
    const Expr is_high = y > 2;
    const Expr lower = y - 1;
    sum = sum + select(is_high, 1 / lower, 0);
    y = select(is_high, lower, y);
  }
  const Expr g = y - kDigammaRoot[0] - kDigammaRoot[1] - kDigammaRoot[2];
  const Expr ratio = polynomial(y - 1, kDigammaP) / polynomial(y - 1, kDigammaQ);
  return select(x >= 10, large, sum + (g * kDigammaBase + g * ratio));
}

}  // namespace

Expr stirling_correction(Expr a) {
  const Expr z = 1 / a;
  return z * polynomial(z * z, kStirling);
}

Expr lgamma_f64(Expr x) {
  const Expr a = abs(x);
  const Expr of_magnitude =
      select(a < 2, lgamma_below_two(a), select(a < 8, lgamma_below_eight(a), lgamma_stirling(a)));
  // gamma(x) gamma(-x) = -pi / (x sin(pi x)); the logarithm is +inf at the poles and wins.
  const Expr fraction = a - floor(a);
  const Expr distance = select(fraction > 0.5, 1 - fraction, fraction);
  const Expr log_product = log(kPi / (a * sin(kPi * distance)));
  const Expr reflected = select(is_finite(log_product), log_product - of_magnitude, log_product);
  const Expr result = select(a < 0x1p-70, -log(a), select(x < 0, reflected, of_magnitude));
  return select(a == kInfinity, kInfinity, result);
}

Expr digamma_f64(Expr x) {
  // psi(x) = psi(1 - x) - pi cot(pi x), the angle from the distance to the nearest integer.
  const Expr is_negative = x < 0;
  const Expr angle = (x - floor(x + 0.5)) * kPi;
  const Expr reflection = select(is_negative, kPi * cos(angle) / sin(angle), 0);
  const Expr result = digamma_of_positive(select(is_negative, 1 - x, x)) - reflection;
  const Expr is_pole = (x <= 0) & (x == floor(x));
  return select(is_pole, kNan, select(x == kInfinity, kInfinity, result));
}

}  // namespace tenon::hlo::expand
