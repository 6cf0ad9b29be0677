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
#include <vector>

#include "core/base/process/sanitizers.h"

namespace tenon {

/// Moves this thread away from `processor` and keeps the set of those it may use. Returns false,
/// and changes nothing, if it may run on no other.
inline bool leave_processor(int processor) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  return sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

/// Keeps the workers that join the loops of a thread away from that thread's processor. Linux
/// wakes a thread where it last ran, or beside the one that wakes it, if it believes the machine to
/// be busy, though another processor is idle; the two then share one for up to 20 ms, until the
/// scheduler balances.
class WorkerObserver : public tbb::task_scheduler_observer {
 public:
  WorkerObserver() { observe(true); }
  ~WorkerObserver() override { observe(false); }
  WorkerObserver(const WorkerObserver&) = delete;
  WorkerObserver& operator=(const WorkerObserver&) = delete;

  /// A loop of the thread begins. Returns whether workers must be woken for it.
  bool begin_loop() {
    processor_.store(sched_getcpu(), std::memory_order_relaxed);
    return workers_.load(std::memory_order_relaxed) == 0;
  }

  void on_scheduler_entry(bool is_worker) override {
    if (!is_worker) return;
    ++workers_;
    const int here = sched_getcpu();
    if (here == processor_.load(std::memory_order_relaxed)) leave_processor(here);
  }
  void on_scheduler_exit(bool is_worker) override {
    if (is_worker) --workers_;
  }

 private:
  std::atomic<int> processor_ = -1;
  std::atomic<int> workers_ = 0;  // in the thread's arena
};

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
  thread_local WorkerObserver workers;
  // A worker that is woken on this thread's processor can leave it only after it has run.
  bool yields = workers.begin_loop();
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
