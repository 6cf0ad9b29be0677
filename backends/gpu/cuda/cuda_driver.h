// backends/gpu/cuda/: the CUDA driver, loaded at run time.
//
// GPUs, by the CUDA driver.
#pragma once

#include <memory>
#include <string>

#include "backends/gpu/driver.h"

namespace tenon::gpu {

/// Loads the driver when it is first asked. `library`: of the driver. Loads cubins and PTX.
/// Thread-safety: as driver.h says.
std::unique_ptr<Driver> make_cuda_driver(std::string library = "libcuda.so.1");

}  // namespace tenon::gpu
