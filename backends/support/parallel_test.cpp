#include "backends/support/parallel.h"

#include <gtest/gtest.h>

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
    bool moved =
        false;  // The scheduler may move it back at any time: one success of many is enough.
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
