// Exponentially scaled modified Bessel function of order 1.
//
// Coefficients are interpolations at Chebyshev nodes, computed with 60 digits; their relative
// errors are below a tenth of a unit in the last place.
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

// I1(x) / x in x^2, for |x| <= 8 (f32: 4): a sum of positive terms.
constexpr double kSmallF32[] = {1.873181327e-13, 3.264038629e-11, 5.665149163e-9, 6.780643533e-7,
                                5.425389836e-5,  0.002604165812,  0.06250000065,  0.4999999999};
constexpr double kSmallF64[] = {
    2.4334892279361836947e-38, 1.4710564886031101453e-35,  1.6696390898900486088e-32,
    1.3687885297024527022e-29, 9.9942216895029588955e-27,  6.2345848315302369196e-24,
    3.2919412579335861817e-21, 1.4484515319273499967e-18,  5.2144261415935762161e-16,
    1.5017547178772908348e-13, 3.3639305694006159358e-11,  5.6514033564761592467e-9,
    6.7816840277780589205e-7,  0.000054253472222222132161, 0.0026041666666666668185,
    0.062499999999999999899,   0.50000000000000000001,
};
// sqrt(x) exp(-x) I1(x) in 16 / x - 1, for x >= 8 (f32: in 8 / x - 1, for x >= 4).
constexpr double kLargeF32[] = {3.73357852e-6,    1.709871907e-6,  -1.584451859e-5, -1.001707204e-5,
                                3.109703936e-5,   3.761482864e-5,  -1.788774351e-5, -9.383144262e-5,
                                -0.0002349270566, -0.001125763544, -0.02048647116,  0.3794122674};
constexpr double kLargeF64[] = {
    2.2421768596847443325e-11,  -9.49189039299204836e-11,  -1.6283264322621243544e-10,
    6.7727478454462000752e-10,  5.8706646184714864452e-10, -2.262440110920444729e-9,
    -1.5218214060680733221e-9,  4.7637800780202541178e-9,  3.5017651932901760372e-9,
    -6.9444186339873876052e-9,  -7.6872513087659921283e-9, 5.5720183980930357403e-9,
    1.4051746928735542589e-8,   6.8475782992693399814e-9,  -8.4321689729324166736e-9,
    -2.3394122958362556694e-8,  -4.3128498031006731136e-8, -1.0001075046243961426e-7,
    -3.4838563464253132987e-7,  -1.8349102493990176613e-6, -0.000015038547198221758676,
    -0.00021923576383137776464, -0.0097495771932357642528, 0.3893984590258723195,
};

// The small form amplifies the rounding error of x^2 by x / 2, so the narrower type leaves it
// earlier.
Expr bessel_i1e(const Expr& x) {
  const Expr a = abs(x);
  const double split = for_type(x, 4.0, 8.0);
  const Expr small = x * polynomial(x * x, for_type(x, kSmallF32, kSmallF64)) * exp(-a);
  const Expr large = polynomial((2 * split) / a - 1.0, for_type(x, kLargeF32, kLargeF64)) / sqrt(a);
  return select(a <= split, small, sign(x) * large);
}

}  // namespace

Values chlo_bessel_i1e(Builder& b, const Instruction& op) { return elementwise(b, op, bessel_i1e); }

}  // namespace tenon::hlo::decomposition
