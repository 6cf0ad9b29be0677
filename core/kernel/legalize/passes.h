// The steps of the legaliser, in the order in which legalize() takes them. Private to core/kernel.
#pragma once

#include "core/kernel/legalize/legalize.h"

namespace tenon::kernel {

/// Scans to loops, private memory to scratch, atomics to serial loops, where `features` lack them.
Kernel expand_structure(const Kernel& kernel, const TargetFeatures& features);

/// f16, bf16 and narrower floats to patterns, computed with in f32, where `features` lack them.
Kernel widen_floats(const Kernel& kernel, const TargetFeatures& features);

/// Math functions of f32 and f64, and fma, where `features` lack them.
Kernel expand_functions(const Kernel& kernel, const TargetFeatures& features);

/// f64 to patterns of u64.
Kernel soften_f64(const Kernel& kernel);

/// 64-bit integers to pairs of u32.
Kernel split_integers(const Kernel& kernel);

/// 8- and 16-bit integers and narrower ones to 32 bits, where `features` lack them.
Kernel widen_integers(const Kernel& kernel, const TargetFeatures& features);

/// Memory of several dimensions to one.
Result<Kernel> flatten(const Kernel& kernel);

}  // namespace tenon::kernel
