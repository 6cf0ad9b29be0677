// The error function, its complement and its inverse.
//
// Coefficients without a stated source are interpolations at Chebyshev nodes, computed with 60
// digits; their relative errors are below a tenth of a unit in the last place.
#include <limits>

#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
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

// erfc(x) for x >= 0.5. The exponential would multiply an error of x^2 by its size, so x^2 is
// split: z^2 is exact, x^2 - z^2 is small.
Expr erfc_of_positive(const Expr& x_in) {
  const Expr x = min(x_in, x_in.constant(28));  // erfc is zero long before this
  const Expr z = rounded_to_bits(x, x.type() == ElementType::kF64 ? 25 : 11);
  const Expr t = (x - 3.75) / (x + 3.75);
  const Expr scaled = polynomial(t, for_type(x, kErfcF32, kErfcF64)) / (1.0 + 2.0 * x);
  return exp(-z * z) * (exp((z - x) * (z + x)) * scaled);
}

// -log(erfc(x)) for 1 <= x <= 3.95, where erf(x) becomes 1 in f32. The difference 1 - erfc(x) needs
// erfc to few bits, so that one exponential does.
constexpr double kErfFarF32[] = {
    -1.658320522e-6, 4.645992365e-5, -0.000600055479, 0.004774191028,   -0.02646087915,
    0.1101471795,    0.6317575505,   1.130272075,     -0.0003293570892,
};

Expr erf(const Expr& x) {
  const Expr a = abs(x);
  const Expr far = x.type() == ElementType::kF64
                       ? 1.0 - erfc_of_positive(a)
                       : 1.0 - exp(-polynomial(min(a, x.constant(3.95)), kErfFarF32));
  return select(a < 1.0, erf_near_zero(x), sign(x) * far);
}

Expr erfc(const Expr& x) {
  const Expr a = abs(x);
  const Expr far = erfc_of_positive(a);
  return select(a < 0.5, 1.0 - erf_near_zero(x), select(x < 0.0, 2.0 - far, far));
}

// M. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition (2011): erf_inv(x)
// / x in w = -log(1 - x^2), by ranges of w.
constexpr double kErfInvCentreF32[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                       -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                       -0.00417768164,  0.246640727,    1.50140941};
constexpr double kErfInvTailF32[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                     -0.00367342844,  0.00573950773,  -0.0076224613,
                                     0.00943887047,   1.00167406,     2.83297682};
constexpr double kErfInvCentreF64[] = {
    -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,
    1.115787767802518096e-17,   -1.333171662854620906e-16,  2.0972767875968561637e-17,
    6.6376381343583238325e-15,  -4.0545662729752068639e-14, -8.1519341976054721522e-14,
    2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08,
    4.2347877827932403518e-07,  -1.3654692000834678645e-06, -1.3882523362786468719e-05,
    0.0001867342080340571352,   -0.00074070253416626697512, -0.0060336708714301490533,
    0.24015818242558961693,     1.6536545626831027356};
constexpr double kErfInvMiddleF64[] = {
    2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
    1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
    2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
    6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
    0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
    -0.0037512085075692412107, 0.005370914553590063617,   1.0052589676941592334,
    3.0838856104922207635};
constexpr double kErfInvTailF64[] = {
    -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
    -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
    2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
    -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
    7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
    1.0103004648645343977,      4.8499064014085844221};

Expr erf_inv(const Expr& x) {
  const Expr a = abs(x);
  // The form that keeps small numbers accurate, at either end.
  const Expr w = -select(a < 0.5, log1p(-(x * x)), log((1.0 - a) * (1.0 + a)));
  const Expr root = sqrt(w);
  const Expr factor = x.type() == ElementType::kF64
                          ? select(w < 6.25, polynomial(w - 3.125, kErfInvCentreF64),
                                   select(w < 16.0, polynomial(root - 3.25, kErfInvMiddleF64),
                                          polynomial(root - 5.0, kErfInvTailF64)))
                          : select(w < 5.0, polynomial(w - 2.5, kErfInvCentreF32),
                                   polynomial(root - 3.0, kErfInvTailF32));
  return select(a == 1.0, x * std::numeric_limits<double>::infinity(), x * factor);
}

}  // namespace

Values chlo_erf(Builder& b, const Instruction& op) { return elementwise(b, op, erf); }
Values chlo_erfc(Builder& b, const Instruction& op) { return elementwise(b, op, erfc); }
Values chlo_erf_inv(Builder& b, const Instruction& op) { return elementwise(b, op, erf_inv); }

}  // namespace tenon::hlo::decomposition
