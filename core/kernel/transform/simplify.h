// The simplifier: the same kernel with less to do.
#pragma once

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// Folds operations that intervals and linear forms of indices decide ((i * 8 + j) / 8 with j in
/// [0, 8) is i), inlines branches and loops that are decided, shares common subexpressions, hoists
/// loop-invariant nodes (never out of a branch), and eliminates dead code. The result stores the
/// same bits.
Kernel simplify(const Kernel& kernel);

/// Dead code elimination alone: removes nodes whose results reach no buffer.
Kernel eliminate_dead(const Kernel& kernel);

}  // namespace tenon::kernel
