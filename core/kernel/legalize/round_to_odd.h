// Rounding to odd, after which another rounding to at least two bits fewer gives what rounding once
// would (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#pragma once

#include "core/kernel/legalize/expr.h"

namespace tenon::kernel {

/// `rounded`, a float to nearest of a number, as that number rounds to odd: `exact` says that they
/// are equal, `too_far` that its magnitude is greater.
Expr made_odd(Expr rounded, Expr exact, Expr too_far);

/// x + y, rounded to odd; x and y are floats of one type.
Expr add_to_odd(Expr x, Expr y);

/// f64 or an integer to f32, rounded to odd.
Expr convert_to_odd_f32(Expr x);

}  // namespace tenon::kernel
