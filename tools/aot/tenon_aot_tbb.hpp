// A parallel-for of oneTBB for models with --threads.
#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdint>

#include "tenon_aot.h"

namespace tenon_aot {

/// The context's pool: an arena of at most a model's `threads`.
struct Tbb {
  explicit Tbb(int threads) : arena(threads) {}
  tbb::task_arena arena;

  static void parallel_for(void* pool, std::int64_t count,
                           void (*task)(void* data, std::int64_t i, std::int64_t worker),
                           void* data) {
    static_cast<Tbb*>(pool)->arena.execute([&] {
      tbb::parallel_for(std::int64_t{0}, count, [&](std::int64_t i) {
        task(data, i, tbb::this_task_arena::current_thread_index());
      });
    });
  }
};

}  // namespace tenon_aot
