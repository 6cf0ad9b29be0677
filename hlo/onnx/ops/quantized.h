// Quantised numbers: q stands for (q - zero point) * scale.
#pragma once

#include "hlo/onnx/lowering.h"

namespace tenon::hlo {

/// x / scale + zero, rounded to `type` with its limits, or to a float of eight or four bits. Scale
/// and zero are beside x.
Value onnx_quantize(OnnxLowering& n, Value x, Value scale, std::optional<Value> zero,
                    ElementType type);
/// x less the zero point that the input `zero` gives, as s32; a vector of zero points belongs to
/// dimension `axis`.
Value onnx_centered(OnnxLowering& n, Value x, size_t zero, int64_t axis);

}  // namespace tenon::hlo
