// A GPU as a device of the seam, on any Driver.
#pragma once

#include <memory>

#include "backends/gpu/driver.h"
#include "core/backend/backend.h"

namespace tenon::gpu {

/// Buffers begin at multiples of it.
constexpr int64_t kBufferAlignment = 256;

/// `name` for messages. Loads binaries of save(Code) (code.h). Lost once the context answers
/// kUnavailable (B12). Thread-safety: rule B7.
Result<std::unique_ptr<backend::Device>> make_gpu_device(std::string name,
                                                         std::unique_ptr<Context> context);

}  // namespace tenon::gpu
