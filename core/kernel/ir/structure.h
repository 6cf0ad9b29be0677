// The structure of a kernel: the part of K0 that all code which walks a kernel relies on, including
// the printer that shows the position of an error.
#pragma once

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// The maximum rank of a memory or loop, and the maximum nesting depth of statements.
inline constexpr size_t kMostRank = 64;
inline constexpr int kMostNesting = 200;

/// Returns OK if ids are in range; every value, node, block and memory occurs in exactly one place;
/// each node has exactly the operands, results, blocks with arguments, memories and extents that
/// its operation requires; names are words and distinct. Safe on a Kernel with any content.
Status check_structure(const Kernel& kernel);

}  // namespace tenon::kernel
