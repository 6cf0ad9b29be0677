// The CPU backend: kernels become code of the host by LLVM, workgroups tasks of oneTBB.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace tenon::backend {

/// One device, `cpu:0`: the host with all its cores, its memory the host's; with TENON_CPU_DEVICES
/// as many as that says, which share the cores.
std::unique_ptr<Backend> make_cpu_backend();

}  // namespace tenon::backend
