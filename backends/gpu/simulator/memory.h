// Checks each access of a launch: that it is within the launch's memory, that its address is
// aligned, and that it does not race (shadow.h).
//
// Thread-safety: not thread-safe; checked blocks run one after the other.
#pragma once

#include <deque>

#include "backends/gpu/simulator/shadow.h"
#include "backends/gpu/simulator/simulator.h"

namespace tenon::gpu {

/// An access of a thread, as the code describes it.
struct SimAccess {
  const std::byte* address = nullptr;
  int64_t bytes = 0;
  uint32_t alignment = 1;  ///< Bytes; a GPU faults at an address that is not a multiple of it.
  AccessKind kind{};
  int32_t object = kUnknownObject;
};

class SimMemory {
 public:
  /// All arguments must outlive the object. Without LaunchShape::buffer_bytes only shared memory is
  /// checked.
  SimMemory(const SimImage& image, const SimKernel& kernel, const SimLaunch& launch);

  /// `shared`: the block's shared memory. Errors: kInternal, with the fault and the thread.
  Status look(const SimAccess& access, const std::byte* shared, const Toucher& by);

 private:
  struct SimBuffer {
    std::string name;
    const std::byte* begin = nullptr;
    int64_t bytes = 0;
    bool stored = false;
  };
  // Memory to which the launch stores: one buffer, or several that overlap.
  struct StoredRange {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::optional<Shadow> shadow;
  };

  void add_ranges(int64_t granule);
  const SimBuffer* buffer_at(const std::byte* address) const;
  Status look_at_shared(const SimAccess& access, int64_t offset, const Toucher& by);
  Status look_at_buffers(const SimAccess& access, const Toucher& by);
  Status outside(const SimAccess& access, const std::string& name, int64_t offset, int64_t size,
                 const Toucher& by) const;
  /// OK if the address is a multiple of the alignment.
  Status misaligned(const SimAccess& access, const std::string& name, int64_t offset,
                    const Toucher& by) const;
  Status race(const SimAccess& access, const std::string& name, int64_t offset,
              const RacingAccess& conflict, const Toucher& by) const;

  const SimImage& image_;
  const SimKernel& kernel_;
  bool knows_sizes_ = false;
  std::vector<SimBuffer> buffers_;  // By parameter; a parameter that is not a buffer has no bytes.
  std::deque<StoredRange> ranges_;
  std::optional<Shadow> shared_;
};

/// "@k: "
std::string prefix_of(const SimKernel& kernel);

}  // namespace tenon::gpu
