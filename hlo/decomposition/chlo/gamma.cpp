// The logarithm of the gamma function and its derivative.
//
// Both have zeros between 1 and 2 (and beyond every pole), near which a sum of terms would have no
// correct digit: there they are computed as a product with the distance to the zero. Coefficients
// are interpolations at Chebyshev nodes, computed with 60 digits; their relative errors are below a
// tenth of a unit in the last place.
#include <cmath>

#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

// lgamma(1 + y) / (y (y - 1)) in y - 0.75, for 0 <= y <= 1.5.
constexpr double kLgammaF32[] = {
    -0.0001311777415, 0.0002469044294, -0.0002463248671, 0.0004761436878,
    -0.001071831706,  0.002116536616,  -0.004224672122,  0.008773533435,
    -0.01905403209,   0.0445205856,    -0.119481586,     0.450139311,
};
constexpr double kLgammaF64[] = {
    -5.0333679908980264055e-8,   9.1127789551716705587e-8,   1.8847734392676647228e-8,
    -3.336913537804953564e-8,    -2.386040832536453094e-7,   4.3462005320787759962e-7,
    -5.1282115091023322427e-7,   9.4249575876981164762e-7,   -1.9066804238023735483e-6,
    3.5164348444281872717e-6,    -6.4348227880149934314e-6,  0.000011945978721649360381,
    -0.000022281912176659652119, 0.000041706247386759290464, -0.000078461673522523088925,
    0.00014851664114522942131,   -0.0002831906297104387965,  0.00054489700254958872524,
    -0.0010605660749412342683,   0.0020955338792364462647,   -0.0042261941259283458537,
    0.0087763704252778881501,    -0.019053957830247412475,   0.044520447198509405066,
    -0.11948158662524274418,     0.45013931210925629891,
};
// Coefficients of Stirling's series: B(2k) / (2k (2k - 1)).
constexpr double kStirlingF32[] = {7.9365079365079365e-4, -2.7777777777777778e-3,
                                   8.3333333333333333e-2};
constexpr double kStirlingF64[] = {-0.02955065359477124183,   0.0064102564102564102564,
                                   -0.0019175269175269175269, 0.00084175084175084175084,
                                   -0.0005952380952380952381, 0.00079365079365079365079,
                                   -0.0027777777777777777778, 0.083333333333333333333};

// digamma(1 + y) / (y - zero) in y - 0.75, for 0 <= y <= 1.5.
constexpr double kDigammaF32[] = {
    0.0009022766929, -0.001580020955, 0.001118438577, -0.001963381122, 0.004612855642,
    -0.00812234975,  0.01396530887,   -0.02485420363, 0.0448011182,    -0.08228814859,
    0.1571200838,    -0.3262545761,   0.8581832171,
};
constexpr double kDigammaF64[] = {
    7.1280145655867631526e-7,    -1.2474034850227780205e-6,  -5.2345935721552034143e-7,
    9.1605034875957057077e-7,    2.9640020159230383797e-6,   -5.1870362096745362201e-6,
    4.5638433261049305015e-6,    -7.9869672886638315021e-6,  0.000016875489208875356635,
    -0.000029533939397506966477, 0.000050422552065757446899, -0.000088253376688373121919,
    0.00015486636037579158919,   -0.00027112201887262868145, 0.00047467512280592554804,
    -0.00083149225480009143592,  0.0014573752539003285019,   -0.0025566870224441609756,
    0.0044918136748718155495,    -0.0079104687430926150612,  0.013985786184791903373,
    -0.024890048490209467743,    0.044799654452774917737,    -0.082285586355758206029,
    0.15712011335204251432,      -0.32625462786810579485,    0.8581832171262995175,
};
// The zero of digamma, minus 1, in two parts.
constexpr double kZeroF32[] = {0.4616321325302124, 1.24381499389e-8};
constexpr double kZeroF64[] = {0.46163214496836236, -1.5522348162858676891e-17};
// Coefficients of the asymptotic series: B(2k) / (2k).
constexpr double kAsymptoticF32[] = {-4.1666666666666667e-3, 3.9682539682539683e-3,
                                     -8.3333333333333333e-3, 8.3333333333333333e-2};
constexpr double kAsymptoticF64[] = {
    3.0539543302701197438,    -0.44325980392156862745,   0.083333333333333333333,
    -0.021092796092796092796, 0.0075757575757575757576,  -0.0041666666666666666667,
    0.003968253968253968254,  -0.0083333333333333333333, 0.083333333333333333333};

// The series are used from here on.
constexpr int kFar = 8;

// The reduction of numbers below kFar to [1, 2.5), where the polynomials are valid.
struct Reduced {
  Expr from_one;  ///< 1 + from_one is in [1, 2.5); for x below 1, x itself
  Expr from_two;
};
Reduced reduced(const Expr& x) {
  // The smaller of the distances to the two zeros of lgamma is exact.
  const Expr from_two = x - floor(x + 0.5);
  const Expr from_one = select(x < 1.5, select(x < 1.0, x, x - 1.0), from_two + 1.0);
  return {from_one, select(x < 1.5, from_one - 1.0, from_two)};
}

// lgamma(x) for x >= 1, and lgamma(1 + x) for 0 <= x < 1. From 2.5 up to kFar the product (x - 1)
// (x - 2) … reduces x to [1.5, 2.5).
Expr lgamma_from_one(const Expr& x) {
  const Reduced y = reduced(x);
  const Expr near =
      y.from_one * y.from_two * polynomial(y.from_one - 0.75, for_type(x, kLgammaF32, kLgammaF64));
  Expr product = x.constant(1);
  for (int k = 1; k < kFar - 1; ++k) {
    const Expr factor = x - double(k);
    product = product * select(factor >= 1.5, factor, 1.0);
  }
  constexpr double kHalfLogOfTwoPi = 0.91893853320467274178;
  const Expr inverse = 1.0 / x;
  const Expr series =
      inverse * polynomial(inverse * inverse, for_type(x, kStirlingF32, kStirlingF64));
  const Expr far = (x - 0.5) * (log(x) - 1.0) + (kHalfLogOfTwoPi - 0.5 + series);
  return select(x < double(kFar), near + log(product), far);
}

// Below zero by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x), with lgamma(1 + |x|).
Expr lgamma(const Expr& x) {
  const Expr a = abs(x);
  const Expr below_one = a < 1.0;
  const Expr above = lgamma_from_one(a);
  const Expr positive = select(below_one, above - log(a), above);
  // sin(pi x) / pi from the distance of x to an integer, also if that is subnormal.
  const Expr distance = abs(x - round(x));
  const Expr angle = kPi * distance;
  const Expr sine = distance * (sin(angle) / angle);
  const Expr reflected = -log(sine * select(below_one, 1.0, a)) - above;
  const Expr is_pole = (x <= 0.0) & (x == floor(x));
  return select(is_pole | (a == kInfinity), kInfinity, select(x < 0.0, reflected, positive));
}

// digamma(x) for x >= 1, and digamma(1 + x) for 0 <= x < 1. From 2.5 up to kFar reciprocals of x -
// 1, x - 2 … reduce x to [1.5, 2.5).
Expr digamma_from_one(const Expr& x) {
  const Expr y = reduced(x).from_one;
  const std::span<const double> zero = for_type(x, kZeroF32, kZeroF64);
  Expr near =
      ((y - zero[0]) - zero[1]) * polynomial(y - 0.75, for_type(x, kDigammaF32, kDigammaF64));
  for (int k = 1; k < kFar - 1; ++k) {
    const Expr below = x - double(k);
    near = near + select(below >= 1.5, 1.0 / below, 0.0);
  }
  const Expr inverse = 1.0 / x;
  const Expr square = inverse * inverse;
  const Expr series = square * polynomial(square, for_type(x, kAsymptoticF32, kAsymptoticF64));
  return select(x < double(kFar), near, log(x) - (0.5 * inverse + series));
}

}  // namespace

// Below zero by reflection: digamma(1 - x) - digamma(x) = pi / tan(pi x).
Expr digamma(const Expr& x) {
  const Expr a = abs(x);
  const Expr below_one = a < 1.0;
  const Expr above = digamma_from_one(a);
  const Expr positive = select(below_one, above - 1.0 / a, above);
  const Expr angle = kPi * (x - round(x));
  const Expr cotangent = kPi * (cos(angle) / sin(angle));
  const Expr reflected = select(below_one, above, above + 1.0 / a) - cotangent;
  const Expr is_pole = (x <= 0.0) & (x == floor(x));
  return select(is_pole, kNan, select(x < 0.0, reflected, positive));
}

Values chlo_digamma(Builder& b, const Instruction& op) { return elementwise(b, op, digamma); }
Values chlo_lgamma(Builder& b, const Instruction& op) { return elementwise(b, op, lgamma); }

}  // namespace tenon::hlo::decomposition
