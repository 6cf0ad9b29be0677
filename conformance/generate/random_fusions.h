// Random fusions, for differential tests: what a fusion pass might do, and more.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::conformance {

/// Puts ops of the entry of `module` into fusions drawn by `seed`: of neighbours, or of any that
/// may be, other fusions too. Results and their order stay. The number of fusions made.
int fuse_at_random(hlo::Module& module, uint64_t seed);

}  // namespace tenon::conformance
