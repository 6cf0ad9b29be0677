#include "backends/cpu/tasks.h"

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <exception>
#include <memory>
#include <new>

#include "backends/support/parallel.h"

namespace tenon::cpu {
namespace {

constexpr std::align_val_t kMemoryAlignment{64};

// Sets the default floating-point environment (round to nearest, denormals kept) instead of the
// calling thread's, so that every run gives the same bits.
class FloatMode {
 public:
#ifdef __x86_64__
  // Generated code computes in vector registers alone. The functions of C set the x87's state too,
  // which takes longer than a small kernel.
  FloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FloatMode() { _mm_setcsr(before_); }
#else
  FloatMode() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatMode() { std::fesetenv(&before_); }
#endif
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
#ifdef __x86_64__
  static constexpr unsigned kDefault = 0x1f80;  // All exceptions masked.
  const unsigned before_;
#else
  std::fenv_t before_;
#endif
};

// Scratch memory of a thread, which grows on demand.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { release(); }

  /// Null if there is not enough memory.
  std::byte* at_least(int64_t bytes) {
    if (bytes <= bytes_) return data_;
    release();
    data_ = static_cast<std::byte*>(
        ::operator new(static_cast<size_t>(bytes), kMemoryAlignment, std::nothrow));
    bytes_ = data_ == nullptr ? 0 : bytes;
    return data_;
  }

 private:
  void release() { ::operator delete(data_, kMemoryAlignment); }
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
  // A thread that has none to share with computes adjacent workgroups at once.
  if (workgroups <= grain || tbb::this_task_arena::max_concurrency() == 1) {
    const FloatMode mode;
    entry(buffers, scalars, 0, workgroups, mine, stops);
    return true;
  }
  // `ran` tells for each part whether it ran. This thread runs the parts for which other threads
  // had no scratch memory, and all parts that never began if oneTBB stops early: no exception may
  // pass through generated code.
  const int64_t parts = (workgroups + grain - 1) / grain;
  const std::unique_ptr<std::atomic<bool>[]> ran(
      new (std::nothrow) std::atomic<bool>[static_cast<size_t>(parts)]());
  const auto run = [&](int64_t i, std::byte* scratch) {
    const FloatMode mode;
    entry(buffers, scalars, i * grain, std::min((i + 1) * grain, workgroups), scratch, stops);
  };
  const auto part = [&](int64_t i) {
    std::byte* const scratch = scratch_of_thread().at_least(scratch_bytes);
    if (scratch == nullptr && scratch_bytes > 0) return;
    run(i, scratch);
    ran[static_cast<size_t>(i)] = true;
  };
  // While this thread waits it must not begin tasks of other loops: it may be within a segment,
  // whose scratch memory must not be reallocated.
  try {
    if (ran != nullptr) parallel_for(parts, part);
  } catch (const std::exception&) {
    // oneTBB had no memory for tasks; the remaining parts run below.
  }
  for (int64_t i = 0; i < parts; ++i) {
    if (ran == nullptr || !ran[static_cast<size_t>(i)]) run(i, mine);
  }
  return true;
}

}  // namespace tenon::cpu
