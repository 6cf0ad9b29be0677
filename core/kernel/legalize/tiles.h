// The expansion of tile statements into loops: their definition.
#pragma once

#include <functional>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// `kernel` without `copy` and `contract`. With `registers`, where private memory is registers, a
/// product into it goes along the contracted dimension first and through a lane's results within,
/// so that elements of the factors loaded for a step serve all of them; else through the results
/// first, so that each is loaded and stored once. Each result is summed in order either way.
/// Statements for which `keeps` is true stay.
Kernel expand_tiles(const Kernel& kernel, bool registers = false,
                    const std::function<bool(const Node&)>& keeps = {});
bool has_tiles(const Kernel& kernel);

}  // namespace tenon::kernel
