// A parallel-for of std::thread for models with --threads: for trying it out, since each call starts
// threads. A server gives its own pool, as tenon_aot_tbb.hpp does.
#pragma once

#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "tenon_aot.h"

namespace tenon_aot {

/// The context's pool: a model's `threads` is the most.
struct StdThreads {
  std::int64_t threads = 1;

  static void parallel_for(void* pool, std::int64_t count,
                           void (*task)(void* data, std::int64_t i, std::int64_t worker),
                           void* data) {
    std::atomic<std::int64_t> next = 0;
    const auto work = [&](std::int64_t worker) {
      for (std::int64_t i = next++; i < count; i = next++) task(data, i, worker);
    };
    std::vector<std::thread> others;
    const std::int64_t most = static_cast<const StdThreads*>(pool)->threads;
    try {
      for (std::int64_t w = 1; w < most && w < count; ++w) others.emplace_back(work, w);
    } catch (const std::system_error&) {
      // Those that there are do the work.
    }
    work(0);
    for (std::thread& each : others) each.join();
  }
};

}  // namespace tenon_aot
