// The GPU backends: kernels become code of NVIDIA GPUs by LLVM; `gpu` runs it by the CUDA driver,
// `gpu-sim` on the host.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// The GPUs of the machine, `gpu:0` …; devices() says why there are none. The driver is loaded when
/// it is first asked.
std::unique_ptr<Backend> make_gpu_backend();

struct GpuSimConfig {
  size_t devices = 1;
  /// Looks for races and accesses out of range: slower, and each is the launch's error.
  bool checks = false;
};
std::unique_ptr<Backend> make_gpu_sim_backend(const GpuSimConfig& config);
/// As TENON_GPU_SIM_DEVICES and TENON_GPU_SIM_CHECKS say. Errors: a number that is none.
Result<std::shared_ptr<Backend>> make_gpu_sim_backend();

}  // namespace tenon::backend
