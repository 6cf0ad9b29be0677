// backends/cpu/: the CPU backend: LLVM code of the host, run as oneTBB tasks.
//
// The CPU backend: kernels become code of the host by LLVM, workgroups tasks of oneTBB.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// Devices `cpu:0` …: the host with all its cores, which they share, and its memory.
std::unique_ptr<Backend> make_cpu_backend(size_t devices);
/// As many as TENON_CPU_DEVICES says, else one. Errors: a number that is none.
Result<std::shared_ptr<Backend>> make_cpu_backend();

}  // namespace tenon::backend
