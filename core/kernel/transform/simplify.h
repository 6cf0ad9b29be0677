// The simplifier: the same kernel with less to do.
#pragma once

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// Folds what intervals and linear forms of indices decide ((i * 8 + j) / 8 with j in [0, 8) is i),
/// inlines branches and loops that are decided, shares common subexpressions, moves what a loop
/// does not change out of it (never out of a branch), and drops what no buffer ever sees. The
/// result stores the same bits.
Kernel simplify(const Kernel& kernel);

/// The last of these alone: without nodes whose results reach no buffer.
Kernel eliminate_dead(const Kernel& kernel);

}  // namespace tenon::kernel
