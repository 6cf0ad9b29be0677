// backends/support/: what the backends of this tree share beside code generation.
//
// Loops on oneTBB threads.
#pragma once

#include <sched.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/process/sanitizers.h"

#if TENON_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace tenon {

/// Moves this thread away from `processor`; the set of those it may use is afterwards what it was.
/// Returns false if there is no other, or the system refuses.
inline bool leave_processor(int processor) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  return sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

/// Moves workers that come to the loops of a thread away from that thread's processor. Linux wakes
/// a thread where it last ran, or beside the one that wakes it, if it believes the machine to be
/// busy, though another processor is idle; the two then share one for up to 20 ms, until the
/// scheduler balances.
///
/// Observes the arena in which it is made. Its thread alone calls begin_loop().
class WorkerObserver : public tbb::task_scheduler_observer {
 public:
  WorkerObserver() {
#if TENON_ASAN
    // The main thread never leaves its arena, which keeps what observes it until the process ends.
    const __lsan::ScopedDisabler kept;
#endif
    observe(true);
  }
  ~WorkerObserver() override { observe(false); }
  WorkerObserver(const WorkerObserver&) = delete;
  WorkerObserver& operator=(const WorkerObserver&) = delete;

  /// A loop of the thread begins. Returns whether to yield once work is there: a worker that is
  /// woken on this processor leaves it only after it has run. Not if one is at hand, nor if none
  /// came since the last time.
  bool begin_loop() {
    processor_.store(sched_getcpu(), std::memory_order_relaxed);
    if (workers_.load(std::memory_order_relaxed) != 0) return false;
    const int64_t came = came_.load(std::memory_order_relaxed);
    return std::exchange(came_before_, came) != came;
  }
  /// How often a worker came.
  int64_t came() const { return came_.load(std::memory_order_relaxed); }

  void on_scheduler_entry(bool is_worker) override {
    if (!is_worker) return;
    ++workers_;
    ++came_;
    const int here = sched_getcpu();
    if (here == processor_.load(std::memory_order_relaxed)) leave_processor(here);
  }
  void on_scheduler_exit(bool is_worker) override {
    if (is_worker) --workers_;
  }

 private:
  std::atomic<int> processor_ = -1;
  std::atomic<int> workers_ = 0;  // that are in the arena
  std::atomic<int64_t> came_ = 0;
  int64_t came_before_ = -1;
};

/// One for all loops of the calling thread.
inline WorkerObserver& workers_of_thread() {
  thread_local WorkerObserver workers;
  return workers;
}

/// Calls body(i) for 0 <= i < count, on several threads, and returns when all are done. While this
/// thread waits it runs no tasks of other loops, so that its thread-local state does not change.
/// Cancelling the enclosing task of the application has no effect. Throws std::exception if there
/// is no memory for tasks; some calls then have not been made.
template <class Body>
void parallel_for(int64_t count, const Body& body) {
#if TENON_TSAN
  // oneTBB is built without the sanitizer, which therefore does not see how its tasks are ordered.
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> threads(static_cast<size_t>(std::clamp<int64_t>(count - 1, 0, 2)));
  for (std::jthread& each : threads) each = std::jthread(work);
  work();
#else
  bool yields = count > 1 && workers_of_thread().begin_loop();
  const std::thread::id caller = std::this_thread::get_id();
  const auto part = [&](int64_t i) {
    if (std::this_thread::get_id() == caller && yields) {
      yields = false;
      std::this_thread::yield();
    }
    body(i);
  };
  tbb::task_group_context own(tbb::task_group_context::isolated);
  tbb::this_task_arena::isolate([&] { tbb::parallel_for(int64_t{0}, count, part, own); });
#endif
}

}  // namespace tenon
