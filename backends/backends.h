// backends/: the backends of this tree, one folder each, and what they share.
//
// Registers these backends, for programs that have them built in.
#pragma once

#include "core/backend/registry/registry.h"

namespace tenon::backend {

/// Adds `template`, `cpu`, `gpu` and `gpu-sim`.
void add_backends(Registry& registry);

}  // namespace tenon::backend
