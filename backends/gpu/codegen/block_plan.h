// How a thread block runs a workgroup: the number of threads, offsets in shared memory, and the
// positions of barriers.
//
// Thread-safety: not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backends/gpu/codegen/runs.h"

namespace tenon::gpu {

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kMostThreads = 256;

/// A range of shared memory or of a buffer: a thread must not access it while another thread may
/// still use it.
struct MemoryRange {
  bool shared = false;
  int64_t begin = 0;  ///< Offset in shared memory; for a buffer, its index, or that of its base.
  int64_t end = 0;
};

/// The memory accesses of a statement, or all accesses since the last barrier.
struct AccessSummary {
  std::vector<MemoryRange> reads;
  std::vector<MemoryRange> writes;
  std::vector<MemoryRange> first_writes;  ///< By thread 0 only, which need not wait for itself.

  void add(const AccessSummary& other);
};

/// Whether a barrier is needed between them.
bool conflict(const AccessSummary& before, const AccessSummary& next);

class BlockPlan {
 public:
  /// `kernel` must be legal for gpu_features() and verified.
  BlockPlan(const kernel::Kernel& kernel, const kernel::Ranges& ranges);

  uint32_t threads() const { return threads_; }
  int64_t shared_bytes() const { return shared_bytes_; }
  /// The maximum size of a thread's private memory.
  int64_t private_bytes() const { return private_bytes_; }

  /// The iterations that a thread takes together in a lanes loop or a reduction over lanes (one in
  /// a scan).
  const AccessRuns& runs(const kernel::Node& n) const { return *runs_.at(&n); }
  /// The offset of scratch memory, in bytes.
  int64_t offset(kernel::MemoryId scratch) const { return offsets_[scratch]; }
  /// The offset of the warps' results of a reduction or scan over lanes, each of kPartialBytes: by
  /// result, then by warp.
  int64_t partials(const kernel::Node& n) const { return partials_.at(&n); }
  static constexpr int64_t kPartialBytes = 8;
  /// The number of lanes-loop iterations per thread for which it has an instance of this private
  /// memory.
  int64_t instances(kernel::MemoryId memory) const;

  MemoryRange place(kernel::MemoryId memory) const;
  MemoryRange partials_place(const kernel::Node& n) const;
  /// The accesses of a statement outside of lanes loops, including all statements within it.
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
