// A GPU as a device of the seam, through any Driver.
#pragma once

#include <memory>

#include "backends/gpu/driver.h"
#include "core/backend/backend.h"

namespace tenon::gpu {

/// The alignment of buffers.
constexpr int64_t kBufferAlignment = 256;

/// Queues of a device, each a stream: for kernels, and for copies in either direction, for which
/// GPUs have engines of their own.
constexpr uint32_t kQueues = 3;

/// `name` is for messages. `graphs`: whether segments may become graphs. Loads binaries of
/// save(Code) (code.h). The device is lost once the context returns kUnavailable (B12).
/// Thread-safety: rule B7.
Result<std::unique_ptr<backend::Device>> make_gpu_device(std::string name,
                                                         std::unique_ptr<Context> context,
                                                         bool graphs = true);

}  // namespace tenon::gpu
