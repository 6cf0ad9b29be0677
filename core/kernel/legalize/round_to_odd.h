// Rounding to odd, after which another rounding to at least two bits fewer gives what rounding once
// would (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#pragma once

#include "core/kernel/legalize/expr.h"

namespace tenon::kernel {

/// `rounded`, a float to nearest of a number, as that number rounds to odd: `exact` says that they
/// are equal, `too_far` that its magnitude is greater.
KernelExpr made_odd(KernelExpr rounded, KernelExpr exact, KernelExpr too_far);

/// x + y, rounded to odd; x and y are floats of one type.
KernelExpr add_to_odd(KernelExpr x, KernelExpr y);

/// f64 or an integer to f32, rounded to odd.
KernelExpr convert_to_odd_f32(KernelExpr x);

}  // namespace tenon::kernel
