// The expansion of tile statements into loops: their definition.
#pragma once

#include <functional>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// `kernel` with `copy` and `contract` replaced by loops, except statements for which `keeps` is
/// true. With `registers`, where private memory is registers, the outer loop of a product into it
/// runs along the contracted dimension and the inner loops over a lane's results, so that the
/// elements of the factors loaded for a step serve all results. Otherwise the outer loops run over
/// the results, so that each is loaded and stored once. Each result is summed in the same order in
/// both cases.
Kernel expand_tiles(const Kernel& kernel, bool registers = false,
                    const std::function<bool(const Node&)>& keeps = {});
bool has_tiles(const Kernel& kernel);

/// Whether a `contract` adds to all sums of a private c, so that each lane's are a block of rows
/// and columns.
bool covers_private_sums(const Kernel& kernel, const Node& contract);

}  // namespace tenon::kernel
