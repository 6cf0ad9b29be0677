// Which outputs of a kernel may take the memory of which inputs (K4).
#pragma once

#include <utility>
#include <vector>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// Pairs (out, in) of buffers for which K4 is proved: `out` may be declared `over` `in`. Each
/// element of `in` is loaded by the iteration that stores the element of `out` in its place, before
/// it does, and by no other. Buffers of other element types, dimensions or strides are no pair. The
/// analysis is conservative: other pairs may satisfy K4 too.
std::vector<std::pair<MemoryId, MemoryId>> in_place_pairs(const Kernel& kernel);

}  // namespace tenon::kernel
