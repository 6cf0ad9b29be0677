// Weights in a narrower type: smaller constants, which are widened where they are used.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::tools {

/// Simplifies the function `entry`, so that constants stand where they are used, and stores f32
/// constants as `type` (bf16 or f16): those of kLeastNarrowed elements and more that products alone
/// read, which widen each element in their kernels; and those of kLeastConverted elements and more,
/// which are converted for other ops. Constant folding would compute the conversion of smaller
/// ones.
Status narrow_weights(hlo::Module& module, const std::string& entry, ElementType type);

inline constexpr int64_t kLeastNarrowed = 1024;
inline constexpr int64_t kLeastConverted = (1 << 14) + 1;

}  // namespace tenon::tools
