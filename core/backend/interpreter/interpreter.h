// core/backend/interpreter/: the kernel interpreter as a backend.
//
// The backend `interp` runs kernels in the kernel interpreter, on a thread for each queue. It is
// the smallest complete backend, and the reference with which the others are compared.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/kernel/interpreter/interpreter.h"

namespace tenon::backend {

struct InterpreterConfig {
  size_t devices = 1;
  kernel::InterpreterOptions interpreter;  ///< `cancelled` is the backend's own.
  /// The features for which kernels are legalised; by default it accepts kernels without
  /// legalisation.
  std::optional<kernel::TargetFeatures> features;
  /// Memory of a device; 0: no limit.
  int64_t memory_bytes = 0;
  int64_t scratch_bytes = 48 << 10;  ///< 0: none, as without the feature.
  int64_t alignment = 64;            ///< Required alignment of offsets; 64 or more.
  /// Queues, each with a thread of its own; 0: as many as TENON_INTERP_QUEUES says, or 1.
  uint32_t queues = 0;
  /// Whether it takes segments (compile_segment).
  bool segments = true;
};

std::unique_ptr<Backend> make_interpreter_backend(const InterpreterConfig& config = {});

}  // namespace tenon::backend
