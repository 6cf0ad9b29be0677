// core/kernel/math/: the meaning of operations on scalars, and the math functions, each with one
// expansion.
//
// The math functions, computed on the host or expanded into a kernel. Definitions: functions.h and
// trigonometry.h; error bounds: docs/numerics.md.
#pragma once

#include "core/kernel/ir/builder.h"

namespace tenon::kernel {

/// The value of a math function (is_math) at x, or at (x, y).
float math_function(OpCode code, float x, float y);
double math_function(OpCode code, double x, double y);

/// Appends operations that compute the same bits without math functions; x and y are f32 or f64.
ValueId expand_math(Builder& builder, OpCode code, ValueId x, ValueId y = kNone);

}  // namespace tenon::kernel
