// How a kernel's work is laid out in a thread block: how many threads, what lies where in shared
// memory, and where barriers stand.
//
// Thread-safety: none; one user at a time.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backends/gpu/codegen/runs.h"

namespace tenon::gpu {

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kMostThreads = 256;

/// A range of memory that threads share, so that one must not touch it while another may still use
/// it.
struct MemoryRange {
  bool shared = false;
  int64_t begin = 0;  ///< Bytes in shared memory; else the number of the buffer, or of its base.
  int64_t end = 0;
};

/// The memory accesses of a statement, or all accesses since the last barrier.
struct AccessSummary {
  std::vector<MemoryRange> reads;
  std::vector<MemoryRange> writes;
  std::vector<MemoryRange> first_writes;  ///< By thread 0 alone, which need not wait for itself.

  void add(const AccessSummary& other);
};

/// Whether a barrier must stand between them.
bool conflict(const AccessSummary& before, const AccessSummary& next);

class BlockPlan {
 public:
  /// `kernel` is legal for gpu_features() and has been verified.
  BlockPlan(const kernel::Kernel& kernel, const kernel::Ranges& ranges);

  uint32_t threads() const { return threads_; }
  int64_t shared_bytes() const { return shared_bytes_; }
  /// The most of a thread's own arrays.
  int64_t private_bytes() const { return private_bytes_; }

  /// The iterations that a thread takes together in a lanes loop or a reduction over lanes.
  const AccessRuns& runs(const kernel::Node& n) const { return *runs_.at(&n); }
  /// Where scratch memory begins, in bytes.
  int64_t offset(kernel::MemoryId scratch) const { return offsets_[scratch]; }
  /// Where the warps' results of a reduction over lanes begin, each of kPartialBytes: by result,
  /// then by warp.
  int64_t partials(const kernel::Node& n) const { return partials_.at(&n); }
  static constexpr int64_t kPartialBytes = 8;
  /// Iterations of lanes loops of which a thread has an instance of this private memory.
  int64_t instances(kernel::MemoryId memory) const;

  MemoryRange place(kernel::MemoryId memory) const;
  MemoryRange partials_place(const kernel::Node& n) const;
  /// The accesses of a statement outside of lanes loops, and of all statements within it.
  AccessSummary touched(const kernel::Node& n) const;

 private:
  void count_threads();
  void lay_out(kernel::BlockId body, int64_t from);
  void add(const kernel::Node& n, bool in_lanes, AccessSummary& touched) const;

  const kernel::Kernel& kernel_;
  uint32_t threads_ = kWarp;
  int64_t shared_bytes_ = 0;
  int64_t private_bytes_ = 0;
  std::map<const kernel::Node*, std::unique_ptr<AccessRuns>> runs_;
  std::vector<int64_t> offsets_;
  std::map<const kernel::Node*, int64_t> partials_;
};

}  // namespace tenon::gpu
