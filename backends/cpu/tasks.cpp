#include "backends/cpu/tasks.h"

#include <tbb/concurrent_vector.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <new>

namespace tenon::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};

// Memory that grows with what runs on its thread.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { release(); }

  /// Null if there is not so much.
  std::byte* at_least(int64_t bytes) {
    if (bytes <= bytes_) return data_;
    release();
    data_ = static_cast<std::byte*>(
        ::operator new(static_cast<size_t>(bytes), kAlignment, std::nothrow));
    bytes_ = data_ == nullptr ? 0 : bytes;
    return data_;
  }

 private:
  void release() { ::operator delete(data_, kAlignment); }
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

Scratch& scratch_of_thread() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

bool run_tasks(Entry entry, std::byte* const* buffers, const uint64_t* scalars, int64_t workgroups,
               int64_t grain, int64_t scratch_bytes, const volatile uint32_t* const* stops) {
  std::byte* const mine = scratch_of_thread().at_least(scratch_bytes);
  if (mine == nullptr && scratch_bytes > 0) return false;
  if (workgroups <= grain) {
    entry(buffers, scalars, 0, workgroups, mine, stops);
    return true;
  }
  using Range = tbb::blocked_range<int64_t>;
  tbb::concurrent_vector<Range> left;
  const auto part = [&](const Range& range) {
    std::byte* const scratch = scratch_of_thread().at_least(scratch_bytes);
    if (scratch == nullptr && scratch_bytes > 0) {
      left.push_back(range);
    } else {
      entry(buffers, scalars, range.begin(), range.end(), scratch, stops);
    }
  };
  // While it waits this thread must not begin what others wait for: it may be within a segment,
  // whose scratch memory would grow under it.
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for(Range(0, workgroups, static_cast<size_t>(grain)), part); });
  // What other threads had no scratch memory for.
  for (const Range& range : left) entry(buffers, scalars, range.begin(), range.end(), mine, stops);
  return true;
}

}  // namespace tenon::cpu
