// backends/gpu/: the GPU backends: NVIDIA GPUs by the CUDA driver, and a simulated one.
//
// LLVM compiles kernels to code for NVIDIA GPUs; `gpu` runs it through the CUDA driver, `gpu-sim`
// on the host.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// The GPUs of the machine, `gpu:0` …; if there are none, devices() returns the reason. The driver
/// is loaded at the first use; `library` is the CUDA driver's. With TENON_GPU_GRAPHS=0, devices of
/// this backend and of the simulator's get segments launch by launch.
std::unique_ptr<Backend> make_gpu_backend(const std::string& library = "libcuda.so.1");

struct GpuSimConfig {
  size_t devices = 1;
  /// Checks for races and accesses out of range: slower; each is an error of the launch.
  bool checks = false;
  /// Runs the code that ptxas gets: after the passes for GPUs. Checks then detect less, because a
  /// pass may remove a wrong access.
  bool optimized = false;
};
std::unique_ptr<Backend> make_gpu_sim_backend(const GpuSimConfig& config);
/// Configured by TENON_GPU_SIM_DEVICES, TENON_GPU_SIM_CHECKS and TENON_GPU_SIM_OPTIMIZED. Errors:
/// TENON_GPU_SIM_DEVICES is not a number from 1 to 4096.
Result<std::shared_ptr<Backend>> make_gpu_sim_backend();

}  // namespace tenon::backend
