// Rounding to odd: rounding its result again, to at least two bits fewer, equals a single rounding
// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#pragma once

#include "core/kernel/legalize/expr.h"

namespace tenon::kernel {

/// Rounds a number to odd, given its rounding to nearest: `exact` states that the two are equal,
/// `too_far` that the magnitude of `rounded` is greater.
KernelExpr made_odd(KernelExpr rounded, KernelExpr exact, KernelExpr too_far);

/// x + y, rounded to odd; x and y are floats of one type.
KernelExpr add_to_odd(KernelExpr x, KernelExpr y);

/// f64 or an integer to f32, rounded to odd.
KernelExpr convert_to_odd_f32(KernelExpr x);

}  // namespace tenon::kernel
