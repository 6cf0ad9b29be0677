// f64 in integer arithmetic: exact, in the sense of docs/numerics.md, on u64 patterns.
//
// The method is that of Hauser's SoftFloat (Berkeley, 1997-2018): significands with guard bits
// whose lowest is sticky, rounded once at the end; special values are selected.
#pragma once

#include "core/kernel/legalize/expr.h"

namespace tenon::kernel {

/// The pattern of the operation's result on patterns of f64 (u64), or a pred for comparisons. No
/// math function, select, load or store: those need no arithmetic.
KernelExpr soft_f64_op(OpCode code, KernelExpr x, KernelExpr y, KernelExpr z);

/// f64 (u64) from a number of another type: pred, an integer, or f32.
KernelExpr soft_f64_from(KernelExpr x);
/// A number of type pred, an integer type or f32 from f64 (u64).
KernelExpr soft_f64_to(KernelExpr x, ElementType type);

}  // namespace tenon::kernel
