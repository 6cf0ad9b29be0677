// The simplifier: returns an equivalent kernel with fewer operations.
#pragma once

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// Folds operations whose result follows from intervals and linear forms of indices ((i * 8 + j) /
/// 8 with j in [0, 8) is i), inlines branches and loops with a known condition, merges common
/// subexpressions, hoists loop-invariant nodes (never out of a branch), and eliminates dead code.
/// The result stores the same bits.
Kernel simplify(const Kernel& kernel);

}  // namespace tenon::kernel
