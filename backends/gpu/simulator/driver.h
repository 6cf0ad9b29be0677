// The simulator as a driver: memory is host memory, streams are threads.
#pragma once

#include <memory>

#include "backends/gpu/driver.h"

namespace tenon::gpu {

struct SimConfig {
  size_t devices = 1;  ///< They share the host's cores.
  int32_t compute_capability = 90;
};

/// Loads images of assemble_for_host() (pass.h). Thread-safety: see driver.h.
std::unique_ptr<Driver> make_sim_driver(const SimConfig& config = {});

}  // namespace tenon::gpu
