// The passes of the legaliser, in the order in which legalize() runs them. Private to core/kernel.
#pragma once

#include "core/kernel/legalize/legalize.h"

namespace tenon::kernel {

/// Replaces scans by loops, private memory by scratch, atomics by serial loops, if `features` lacks
/// them.
Kernel expand_structure(const Kernel& kernel, const TargetFeatures& features);

/// Replaces f16, bf16 and narrower floats by patterns that are computed in f32, if `features` lacks
/// them.
Kernel widen_floats(const Kernel& kernel, const TargetFeatures& features);

/// Expands math functions of f32 and f64, and fma, if `features` lacks them.
Kernel expand_functions(const Kernel& kernel, const TargetFeatures& features);

/// Replaces f64 by patterns of u64.
Kernel soften_f64(const Kernel& kernel);

/// Replaces 64-bit integers by pairs of u32.
Kernel split_integers(const Kernel& kernel);

/// Widens integers of at most 16 bits to 32 bits, if `features` lacks them.
Kernel widen_integers(const Kernel& kernel, const TargetFeatures& features);

/// Replaces memory of several dimensions by memory of one.
Result<Kernel> flatten(const Kernel& kernel);

}  // namespace tenon::kernel
