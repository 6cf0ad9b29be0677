// f64 in integer arithmetic on u64 patterns: exact, in the sense of docs/numerics.md.
//
// The method is that of Hauser's SoftFloat (Berkeley, 1997-2018): significands with guard bits
// whose lowest is sticky, rounded once at the end; special values are selected.
#pragma once

#include "core/kernel/legalize/expr.h"

namespace tenon::kernel {

/// The pattern of the operation's result, from f64 patterns (u64); a pred for comparisons. Not for
/// math functions, select, load and store.
KernelExpr soft_f64_op(OpCode code, KernelExpr x, KernelExpr y, KernelExpr z);

/// f64 (u64) from a number of another type: pred, an integer, or f32.
KernelExpr soft_f64_from(KernelExpr x);
/// A number of type pred, an integer type or f32 from f64 (u64).
KernelExpr soft_f64_to(KernelExpr x, ElementType type);

}  // namespace tenon::kernel
