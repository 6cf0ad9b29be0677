// backends/support/: what the backends of this tree share beside code generation.
//
// Loops on oneTBB threads.
#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/base/process/sanitizers.h"

namespace tenon {

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
  tbb::task_group_context own(tbb::task_group_context::isolated);
  tbb::this_task_arena::isolate([&] { tbb::parallel_for(int64_t{0}, count, body, own); });
#endif
}

}  // namespace tenon
