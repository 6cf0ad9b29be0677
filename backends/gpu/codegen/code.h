// Compiled code for a GPU: images for a Driver, and the launch data of each kernel.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::gpu {

/// A kernel of an image.
struct GpuKernelCode {
  std::string symbol;
  int64_t blocks = 1;     ///< Workgroups; if 0, a launch does nothing.
  uint32_t threads = 32;  ///< In a block; whole warps.
  /// The required size of each buffer in bytes, in the order of the launch.
  std::vector<int64_t> buffers;
  std::vector<ElementType> scalars;
};

// --- Segments: programs of several kernels (Backend::compile_segment)

/// Bytes of a memory of the segment. An empty buffer may have no memory, which is then kNone.
struct SegmentPlace {
  uint32_t memory = 0;
  int64_t offset = 0;
};
struct SegmentLaunch {
  uint32_t kernel = 0;
  std::vector<SegmentPlace> buffers;
  std::vector<uint64_t> scalars;
  /// It copies the first buffer to the second, which may be the same memory. Not saved.
  bool is_copy = false;
};
/// As WorkLoop and WorkChoice (driver.h) say.
struct SegmentLoop {
  uint32_t condition = 0;
  uint32_t body = 0;
  SegmentPlace predicate;
};
struct SegmentChoice {
  SegmentPlace index;
  bool is_pred = false;
  std::vector<uint32_t> branches;
};
using SegmentStep = std::variant<SegmentLaunch, SegmentLoop, SegmentChoice>;
struct GpuSegment {
  std::vector<int64_t> memories;  ///< The required size of each in bytes.
  /// The first is the entry; empty for code that is no segment.
  std::vector<std::vector<SegmentStep>> sequences;
};

struct GpuCode {
  /// The driver loads the first image that it accepts: a cubin, if there is ptxas, and PTX for
  /// CudaDriver; a host object for SimDriver.
  std::vector<std::string> images;
  std::vector<GpuKernelCode> kernels;
  GpuSegment segment;

  bool is_segment() const { return !segment.sequences.empty(); }
};

/// The binary of `Compiled`.
std::string save(const GpuCode& code);
/// Errors: kDataLoss for bytes that save() did not write.
Result<GpuCode> load_code(std::string_view bytes);

}  // namespace tenon::gpu
