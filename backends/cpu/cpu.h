// backends/cpu/: the CPU backend: LLVM code of the host, run as oneTBB tasks.
//
// LLVM compiles kernels to host code; workgroups run as oneTBB tasks.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// Devices `cpu:0` …: each is the host's memory and all of its cores, which the devices share.
std::unique_ptr<Backend> make_cpu_backend(size_t devices);
/// As many devices as TENON_CPU_DEVICES states, by default one. Errors: its value is not a number
/// from 1 to 4096.
Result<std::shared_ptr<Backend>> make_cpu_backend();

}  // namespace tenon::backend
