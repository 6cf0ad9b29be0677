// Complex functions, computed in binary128.
//
// Its exponent range prevents overflow of textbook formulas on parts of f64, and its 113 bits
// absorb their cancellations; special values follow Annex G of C through the C library.
#pragma once

#include "hlo/evaluator/scalars/real_math.h"
#include "hlo/evaluator/scalars/scalar.h"

namespace tenon::hlo::cplx {

using C = ComplexOf<Float128>;

C add(C x, C y);
C sub(C x, C y);
C mul(C x, C y);
C div(C x, C y);
Float128 abs(C x);
C exp(C x);
C expm1(C x);
C log(C x);
C log1p(C x);
C sqrt(C x);
C rsqrt(C x);
C cbrt(C x);
C sin(C x);
C cos(C x);
C tan(C x);
C tanh(C x);
C logistic(C x);
/// e^(y log x), where a product beyond `limit`, the greatest number of the type, becomes infinite.
C pow(C x, C y, Float128 limit);
C atan2(C y, C x);
C sign(C x);

}  // namespace tenon::hlo::cplx
