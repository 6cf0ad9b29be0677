// Index set splitting of lanes loops.
#pragma once

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// Makes several loops of a lanes loop in which an `if` with loads or stores asks on which side of
/// a constant an index of more than `most_together` elements is: in each loop the answer is known.
/// For targets whose lanes are vectors, where lanes that disagree run both sides. Kernels with
/// private memory stay as they are.
Kernel split_lanes(const Kernel& kernel, int64_t most_together);

}  // namespace tenon::kernel
