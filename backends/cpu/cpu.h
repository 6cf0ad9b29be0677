// backends/cpu/: the CPU backend: LLVM code of the host, run as oneTBB tasks.
//
// The CPU backend: kernels become code of the host by LLVM, workgroups tasks of oneTBB.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// Devices `cpu:0` …: the host with all its cores, which they share, and its memory.
std::unique_ptr<Backend> make_cpu_backend(size_t devices);
/// As many devices as TENON_CPU_DEVICES says, one if it is not set. Errors: its value is not a
/// number from 1 to 4096.
Result<std::shared_ptr<Backend>> make_cpu_backend();

}  // namespace tenon::backend
