// Compiled code for a GPU: images for a Driver, and how each kernel is launched.
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
  int64_t blocks = 1;            ///< Workgroups; a launch of none does nothing.
  uint32_t threads = 32;         ///< In a block; whole warps.
  std::vector<int64_t> buffers;  ///< Bytes that each must have, in the order of the launch.
  std::vector<ElementType> scalars;
};

struct GpuCode {
  /// The first that the driver takes is loaded: a cubin, if there is ptxas, and PTX for CudaDriver,
  /// a host object for SimDriver.
  std::vector<std::string> images;
  std::vector<GpuKernelCode> kernels;
};

/// The binary of `Compiled`.
std::string save(const GpuCode& code);
/// Errors: kDataLoss, bytes that save() did not write.
Result<GpuCode> load_code(std::string_view bytes);

}  // namespace tenon::gpu
