// hlo/onnx/ops/: the rows of the table of ONNX ops, a file for each kind.
//
// Windows over the spatial dimensions of an array of batches and channels.
#pragma once

#include "hlo/onnx/lowering.h"

namespace tenon::hlo {

/// Windows as attributes of convolutions and pools state them, for each spatial dimension.
struct OnnxWindow {
  I64s size, strides, dilations, low, high;
  I64s results;  ///< Windows along each dimension.

  size_t rank() const { return size.size(); }
  /// From the first to the last element, and one.
  int64_t extent(size_t i) const { return (size[i] - 1) * dilations[i] + 1; }
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode for windows of `size` over `x`.
OnnxWindow read_window(const OnnxLowering& n, Value x, I64s size);

/// Convolves [batch, channel, …] with [feature, channel, …].
Value onnx_convolve(const OnnxEmitter& e, Value x, Value weights, const OnnxWindow& window,
                    int64_t groups, std::optional<ElementType> result = {},
                    const I64s& input_dilations = {});
/// The convolution that the node's attributes state.
Value onnx_convolution_of(const OnnxLowering& n, Value x, Value weights,
                          std::optional<ElementType> result = {});

}  // namespace tenon::hlo
