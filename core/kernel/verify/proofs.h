// The verifier's proofs about a kernel that is otherwise well formed. Private to core/kernel.
#pragma once

#include <optional>
#include <vector>

#include "core/kernel/ir/kernel.h"
#include "core/kernel/verify/verifier.h"

namespace tenon::kernel {

/// Whether the combination of a reduction gives the same expressions with its sides swapped (K5).
/// Nodes of unknown meaning (loads, control flow) count as different.
bool is_symmetric(const Kernel& kernel, const Node& reduction);

/// K7 and K10: finds indices that are certainly out of range, and index arithmetic that is not
/// proved to fit. `conditional` states, for each node, whether it may not be executed.
std::optional<Violation> verify_indices(const Kernel& kernel, const std::vector<bool>& conditional);

}  // namespace tenon::kernel
