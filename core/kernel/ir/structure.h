// The structure of a kernel: the part of K0 that everything which walks a kernel takes for granted,
// the printer that shows where an error is too.
#pragma once

#include "core/base/status.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// More dimensions of a memory or loop than this are refused, and statements nested deeper.
inline constexpr size_t kMostRank = 64;
inline constexpr int kMostNesting = 200;

/// OK if ids are in range and every value, node, block and memory stands in one place; if each node
/// has as many operands, results, blocks with arguments, memories and extents as its operation
/// says, and nothing that it does not; if names are words and differ. Safe on a Kernel of any
/// content.
Status check_structure(const Kernel& kernel);

}  // namespace tenon::kernel
