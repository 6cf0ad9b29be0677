// Tile statements as the loops that threads run well.
#pragma once

#include "core/kernel/kernel.h"

namespace tenon::gpu {

/// `kernel` without tile statements. A product into private memory goes along the contracted
/// dimension first and through a lane's results within: its results stay in registers, and what it
/// loads of the factors for one step serves all of them. The results are the same bits: each is
/// summed in order. What has no tile statements is copied as it is.
kernel::Kernel expand_tiles_for_threads(const kernel::Kernel& kernel);

}  // namespace tenon::gpu
