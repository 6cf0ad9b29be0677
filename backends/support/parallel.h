// backends/support/: what the backends of this tree share beside code generation.
//
// Loops on the threads of oneTBB.
#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "backends/support/sanitizers.h"

namespace tenon {

/// Calls body(i) for 0 <= i < count, on several threads, and returns when all are done. While it
/// waits, this thread begins nothing of other loops, so that what it keeps for itself stays its
/// own; that an application cancels the tasks that it is in ends nothing. Throws std::exception if
/// there is no memory for tasks: then not all have been called.
template <class Body>
void parallel_for(int64_t count, const Body& body) {
#if TENON_TSAN
  // oneTBB is built without the sanitizer, which then does not see what its tasks are ordered by.
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
