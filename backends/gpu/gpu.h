// backends/gpu/: the GPU backends: NVIDIA GPUs by the CUDA driver, and a simulated one.
//
// The GPU backends: kernels become code of NVIDIA GPUs by LLVM; `gpu` runs it by the CUDA driver,
// `gpu-sim` on the host.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// The GPUs of the machine, `gpu:0` …; devices() says why there are none. The driver is loaded when
/// it is first asked; `library` is the CUDA driver's.
std::unique_ptr<Backend> make_gpu_backend(const std::string& library = "libcuda.so.1");

struct GpuSimConfig {
  size_t devices = 1;
  /// Looks for races and accesses out of range: slower, and each is the launch's error.
  bool checks = false;
  /// Runs what ptxas gets: the code behind the passes for GPUs. Checks see less then, since a
  /// pass may take away the access that was wrong.
  bool optimized = false;
};
std::unique_ptr<Backend> make_gpu_sim_backend(const GpuSimConfig& config);
/// Configured by TENON_GPU_SIM_DEVICES, TENON_GPU_SIM_CHECKS and TENON_GPU_SIM_OPTIMIZED. Errors:
/// TENON_GPU_SIM_DEVICES is not a number from 1 to 4096.
Result<std::shared_ptr<Backend>> make_gpu_sim_backend();

}  // namespace tenon::backend
