#include "backends/support/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>

namespace tenon {
namespace {

cpu_set_t allowed_now() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  return allowed;
}

// The first two processors that this process may use; fewer if there are not two.
std::vector<int> two_processors() {
  const cpu_set_t allowed = allowed_now();
  std::vector<int> found;
  for (int i = 0; i < CPU_SETSIZE && found.size() < 2; ++i) {
    if (CPU_ISSET(i, &allowed)) found.push_back(i);
  }
  return found;
}

cpu_set_t set_of(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int each : processors) CPU_SET(each, &set);
  return set;
}

TEST(LeaveProcessor, MovesThisThreadAndKeepsWhereItMayRun) {
  const std::vector<int> both = two_processors();
  if (both.size() < 2) GTEST_SKIP() << "needs two processors";
  std::jthread([&] {
    const cpu_set_t here = set_of({both[0]}), either = set_of(both);
    // The scheduler may move it back at any time: one success of many is enough.
    bool moved = false;
    for (int i = 0; i < 100 && !moved; ++i) {
      ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
      ASSERT_EQ(sched_getcpu(), both[0]);
      ASSERT_EQ(sched_setaffinity(0, sizeof either, &either), 0);
      ASSERT_TRUE(leave_processor(both[0]));
      moved = sched_getcpu() == both[1];
      const cpu_set_t after = allowed_now();
      ASSERT_TRUE(CPU_EQUAL(&after, &either));
    }
    EXPECT_TRUE(moved);
  }).join();
}

TEST(LeaveProcessor, StaysOnTheOnlyOne) {
  const int here = two_processors().at(0);
  std::jthread([&] {
    const cpu_set_t only = set_of({here});
    ASSERT_EQ(sched_setaffinity(0, sizeof only, &only), 0);
    EXPECT_FALSE(leave_processor(here));
    const cpu_set_t after = allowed_now();
    EXPECT_TRUE(CPU_EQUAL(&after, &only));
  }).join();
}

TEST(WorkerObserver, YieldsOnceForWorkersThatAreToCome) {
  std::jthread([] {
    WorkerObserver workers;
    EXPECT_TRUE(workers.begin_loop());
    EXPECT_FALSE(workers.begin_loop()) << "though nobody came";
    workers.on_scheduler_entry(true);
    EXPECT_FALSE(workers.begin_loop()) << "though one is there";
    workers.on_scheduler_exit(true);
    EXPECT_TRUE(workers.begin_loop());
    EXPECT_FALSE(workers.begin_loop());
    workers.on_scheduler_entry(false);  // a thread of the application
    EXPECT_FALSE(workers.begin_loop());
    EXPECT_EQ(workers.came(), 1);
  }).join();
}

TEST(WorkerObserver, MovesAWorkerToAnotherProcessor) {
  const std::vector<int> both = two_processors();
  if (both.size() < 2) GTEST_SKIP() << "needs two processors";
  std::jthread([&] {
    const cpu_set_t here = set_of({both[0]}), either = set_of(both);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    WorkerObserver workers;
    workers.begin_loop();
    bool moved = false;
    for (int i = 0; i < 100 && !moved; ++i) {
      std::jthread([&] {
        ASSERT_EQ(sched_setaffinity(0, sizeof either, &either), 0);
        workers.on_scheduler_entry(true);
        moved = sched_getcpu() == both[1];
        workers.on_scheduler_exit(true);
      }).join();
    }
    EXPECT_TRUE(moved);
  }).join();
}

#if !TENON_TSAN  // There loops have threads of their own.
// Two calls, each of which waits for the other: a worker must come, which the thread's observer
// sees.
TEST(ParallelFor, SeesTheWorkersThatCome) {
  if (two_processors().size() < 2) GTEST_SKIP() << "needs two processors";
  std::jthread([] {
    const int64_t before = workers_of_thread().came();
    std::atomic<int> begun = 0;
    parallel_for(2, [&](int64_t) {
      ++begun;
      for (int i = 0; i < 20'000 && begun < 2; ++i) {
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    });
    EXPECT_EQ(begun, 2);
    EXPECT_GT(workers_of_thread().came(), before);
  }).join();
}
#endif

TEST(ParallelFor, CallsEachOnceWhereverItBegins) {
  // Loops of a thread of the application, again once workers wait for more, within a loop, and
  // within another arena.
  const auto calls = [](int64_t count) {
    std::mutex mutex;
    std::multiset<int64_t> called;
    parallel_for(count, [&](int64_t i) {
      const std::lock_guard lock(mutex);
      called.insert(i);
    });
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(called.count(i), 1) << i;
    EXPECT_EQ(called.size(), static_cast<size_t>(count));
  };
  std::jthread([&] {
    for (const int64_t count : {0, 1, 2, 1000, 3}) calls(count);
    std::atomic<int> outer = 0;
    parallel_for(8, [&](int64_t) {
      calls(100);
      ++outer;
    });
    EXPECT_EQ(outer, 8);
    tbb::task_arena(2).execute([&] { calls(50); });
  }).join();
  calls(10);
}

}  // namespace
}  // namespace tenon
