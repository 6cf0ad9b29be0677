// core/backend/interpreter/: the kernel interpreter as a backend.
//
// The backend `interp`: kernels run by the kernel interpreter, on a thread of its own. The smallest
// complete backend, and the one that the others are held against.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/kernel/interpreter/interpreter.h"

namespace tenon::backend {

struct InterpreterConfig {
  size_t devices = 1;
  kernel::InterpreterOptions interpreter;  ///< `cancelled` is the backend's own.
  /// The features that kernels are legalised to; by default kernels are accepted as they are
  /// written.
  std::optional<kernel::TargetFeatures> features;
  /// Memory of a device, 0: as much as there is.
  int64_t memory_bytes = 0;
  int64_t scratch_bytes = 48 << 10;
  int64_t alignment = 64;  ///< Required alignment of offsets; 64 or more.
  /// Whether it takes whole parts of programs (compile_segment).
  bool segments = true;
};

std::unique_ptr<Backend> make_interpreter_backend(const InterpreterConfig& config = {});

}  // namespace tenon::backend
