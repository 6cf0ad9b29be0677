// backends/gpu/cuda/: the CUDA driver, loaded at run time.
//
// Accesses GPUs through the CUDA driver.
#pragma once

#include <memory>
#include <string>

#include "backends/gpu/driver.h"

namespace tenon::gpu {

/// Loads the driver at the first use. `library` is the driver's library. Loads cubins and PTX.
/// Thread-safety: see driver.h.
std::unique_ptr<Driver> make_cuda_driver(std::string library = "libcuda.so.1");

}  // namespace tenon::gpu
