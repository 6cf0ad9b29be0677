// The passes of the legaliser, in the order in which legalize() runs them. Those that
// take a kernel by value return it as it is if there is nothing to replace in it. Private to
// core/kernel.
#pragma once

#include <algorithm>

#include "core/kernel/legalize/legalize.h"

namespace tenon::kernel {

/// Whether `predicate` holds for the type of a value or memory.
template <class Predicate>
bool any_type(const Kernel& kernel, const Predicate& predicate) {
  return std::ranges::any_of(kernel.values, predicate, &Value::type) ||
         std::ranges::any_of(kernel.memories, predicate, &Memory::type);
}

/// Replaces scans by loops, private memory by scratch, atomics by serial loops, if `features` lacks
/// them. This pass copies every kernel, so that the following ones begin with a folded one.
Kernel expand_structure(const Kernel& kernel, const TargetFeatures& features);

/// Replaces f16, bf16 and narrower floats by patterns that are computed in f32, if `features` lacks
/// them.
Kernel widen_floats(Kernel kernel, const TargetFeatures& features);

/// Expands math functions of f32 and f64, and fma, if `features` lacks them.
Kernel expand_functions(Kernel kernel, const TargetFeatures& features);

/// Replaces f64 by patterns of u64.
Kernel soften_f64(Kernel kernel);

/// Replaces 64-bit integers by pairs of u32.
Kernel split_integers(Kernel kernel);

/// Widens integers of at most 16 bits to 32 bits, if `features` lacks them.
Kernel widen_integers(Kernel kernel, const TargetFeatures& features);

/// Replaces memory of several dimensions by memory of one.
Result<Kernel> flatten(const Kernel& kernel);

}  // namespace tenon::kernel
