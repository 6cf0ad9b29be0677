// The expansion of tile statements into loops: their definition.
#pragma once

#include "core/kernel/kernel.h"

namespace tenon::kernel {

/// `kernel` without `copy` and `contract`.
Kernel expand_tiles(const Kernel& kernel);
bool has_tiles(const Kernel& kernel);

}  // namespace tenon::kernel
