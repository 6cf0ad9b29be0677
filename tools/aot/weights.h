// Weights in a narrower type: smaller constants, which are widened where they are used.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::tools {

/// Simplifies the function `entry`, so that constants stand where they are used, and stores f32
/// constants as `type` (bf16, f16 or s8): those of kLeastNarrowed elements and more that products
/// alone read, which widen each element in their kernels; and those of kLeastConverted elements and
/// more, which are converted for other ops. Constant folding would compute the conversion of
/// smaller ones.
///
/// As s8 a weight is q * scale: q in [-127, 127], and a scale for each column of a product's
/// operand (or other dimension that becomes one of the result), each output feature of a
/// convolution, each row for other ops. Products sum x * q and multiply the sums by the scales.
/// Constants with infinities or NaN stay as they are.
Status narrow_weights(hlo::Module& module, const std::string& entry, ElementType type);

inline constexpr int64_t kLeastNarrowed = 1024;
inline constexpr int64_t kLeastConverted = (1 << 14) + 1;

}  // namespace tenon::tools
