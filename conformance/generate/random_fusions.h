// Random fusions, for differential tests: what a fusion pass might make, and more.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// Fuses ops of the entry of `module`, drawn by `seed`: adjacent ops, or any ops that may be fused,
/// including fusions. Results and their order do not change. Returns the number of fusions made.
int fuse_at_random(hlo::Module& module, uint64_t seed);

}  // namespace tenon::conformance
