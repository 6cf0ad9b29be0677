// Compiled code for a GPU: images for a Driver, and the launch data of each kernel.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::gpu {

/// A kernel of an image.
struct GpuKernelCode {
  std::string symbol;
  int64_t blocks = 1;     ///< Workgroups; if 0, a launch does nothing.
  uint32_t threads = 32;  ///< In a block; whole warps.
  /// The required size of each buffer in bytes, in the order of the launch.
  std::vector<int64_t> buffers;
  std::vector<ElementType> scalars;
};

struct GpuCode {
  /// The driver loads the first image that it accepts: a cubin, if there is ptxas, and PTX for
  /// CudaDriver; a host object for SimDriver.
  std::vector<std::string> images;
  std::vector<GpuKernelCode> kernels;
};

/// The binary of `Compiled`.
std::string save(const GpuCode& code);
/// Errors: kDataLoss for bytes that save() did not write.
Result<GpuCode> load_code(std::string_view bytes);

}  // namespace tenon::gpu
