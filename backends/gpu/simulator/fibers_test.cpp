// Fibers, switched by hand and by ucontext: this file is built with each.
#include "backends/gpu/simulator/fibers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tenon::gpu {
namespace {

// A fiber that records its progress, with variables that must survive a switch.
struct Walker {
  Fiber* fiber = nullptr;
  int number = 0;
  int steps = 0;
  std::vector<std::string>* notes = nullptr;
  double result = 0;
};

void walk(void* argument) {
  auto& walker = *static_cast<Walker*>(argument);
  const std::string name = "fiber number " + std::to_string(walker.number);
  double sum = walker.number;
  for (int i = 0; i < walker.steps; ++i) {
    walker.notes->push_back(name + ", step " + std::to_string(i));
    const double before = std::sqrt(sum);
    walker.fiber->give_way();
    sum += before * i;
  }
  walker.result = sum;
}

double expected_result(const Walker& walker) {
  double sum = walker.number;
  for (int i = 0; i < walker.steps; ++i) sum += std::sqrt(sum) * i;
  return sum;
}

TEST(Fibers, TakeTurns) {
  FiberPool pool;
  ASSERT_TRUE(pool.reserve(3, 64 << 10));
  std::vector<std::string> notes;
  std::vector<Walker> walkers(3);
  for (int i = 0; i < 3; ++i) {
    auto& walker = walkers[static_cast<size_t>(i)];
    walker = {&pool[static_cast<size_t>(i)], i, i + 1, &notes, 0};
    walker.fiber->start(walk, &walker);
  }
  for (int turn = 0; turn < 5; ++turn) {
    for (Walker& each : walkers) {
      if (!each.fiber->has_ended()) each.fiber->run();
    }
  }
  EXPECT_EQ(notes, (std::vector<std::string>{"fiber number 0, step 0", "fiber number 1, step 0",
                                             "fiber number 2, step 0", "fiber number 1, step 1",
                                             "fiber number 2, step 1", "fiber number 2, step 2"}));
  for (const Walker& each : walkers) {
    EXPECT_TRUE(each.fiber->has_ended());
    EXPECT_EQ(each.result, expected_result(each));
  }
}

TEST(Fibers, AreLeftAndStartedAgain) {
  FiberPool pool;
  ASSERT_TRUE(pool.reserve(1, 64 << 10));
  struct Work {
    Fiber* fiber;
    int runs = 0;
  } work{&pool[0]};
  for (int i = 0; i < 1000; ++i) {
    pool[0].start(
        [](void* argument) {
          auto& mine = *static_cast<Work*>(argument);
          ++mine.runs;
          mine.fiber->leave();
        },
        &work);
    pool[0].run();
    EXPECT_FALSE(pool[0].has_ended());
  }
  EXPECT_EQ(work.runs, 1000);
}

TEST(Fibers, OwnTheirStacks) {
  FiberPool pool;
  ASSERT_TRUE(pool.reserve(2, 64 << 10));
  struct Places {
    const std::byte* of[2] = {};
    int next = 0;
  } places;
  for (size_t i = 0; i < 2; ++i) {
    pool[i].start(
        [](void* argument) {
          std::byte here{};
          auto& all = *static_cast<Places*>(argument);
          all.of[all.next++] = reinterpret_cast<const std::byte*>(__builtin_frame_address(0));
          static_cast<void>(here);
        },
        &places);
    pool[i].run();
  }
  EXPECT_TRUE(pool[0].owns(places.of[0]));
  EXPECT_FALSE(pool[0].owns(places.of[1]));
  EXPECT_TRUE(pool[1].owns(places.of[1]));
  EXPECT_FALSE(pool[1].owns(reinterpret_cast<const std::byte*>(&places)));
}

TEST(Fibers, ThousandsAndLargerOnes) {
  FiberPool pool;
  ASSERT_TRUE(pool.reserve(1024, 64 << 10));
  std::vector<std::string> notes;
  std::vector<Walker> walkers(1024);
  for (size_t i = 0; i < walkers.size(); ++i) {
    walkers[i] = {&pool[i], static_cast<int>(i), 2, &notes, 0};
    pool[i].start(walk, &walkers[i]);
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (Walker& each : walkers) each.fiber->run();
  }
  for (const Walker& each : walkers) EXPECT_EQ(each.result, expected_result(each));
  // With another stack size, the fibers are new ones.
  ASSERT_TRUE(pool.reserve(1, 4 << 20));
  pool[0].start(
      [](void*) {
        volatile char large[3 << 20];
        large[0] = 1;
        large[sizeof large - 1] = large[0];
      },
      nullptr);
  pool[0].run();
  EXPECT_TRUE(pool[0].has_ended());
  EXPECT_FALSE(pool.reserve(1, size_t{1} << 62));
}

}  // namespace
}  // namespace tenon::gpu
