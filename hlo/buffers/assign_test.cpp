#include "hlo/buffers/assign.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/kernel/ir/builder.h"
#include "hlo/buffers/liveness.h"

namespace tenon::hlo {
namespace {

// A Program of copies only: step s writes temporary s and reads the temporary of step s - `reach`,
// so that about `reach` temporaries are live at one time.
program::Program copies(int64_t count, int64_t reach, uint64_t seed) {
  Random random(seed);
  program::Program program;
  program.name = "copies";
  for (int64_t i = 0; i < count; ++i) {
    program::Buffer buffer;
    buffer.type = ElementType::kU8;
    buffer.dims = {random.between(1, 3000)};
    program.buffers.push_back(std::move(buffer));
  }
  program.sequences.resize(1);
  for (int64_t i = reach; i < count; ++i) {
    const auto to = static_cast<program::BufferId>(i);
    const auto from = static_cast<program::BufferId>(i - reach);
    program.sequences[0].steps.push_back({program::Copy{to, from}, {}, ""});
  }
  return program;
}

// Checks that temporaries that are live at one time do not overlap; `copies` determines their
// lifetimes.
void expect_apart(const program::Program& program, int64_t reach) {
  const auto count = static_cast<int64_t>(program.buffers.size());
  for (int64_t i = reach; i < count - reach; ++i) {
    const program::Buffer& a = program.buffers[static_cast<size_t>(i)];
    ASSERT_EQ(a.offset % program::kAlignment, 0);
    ASSERT_LE(a.offset + a.bytes(), program.temporary_bytes);
    // It is written by step i - reach and read by step i, which writes i + reach.
    for (int64_t k = i + 1; k <= i + reach; ++k) {
      const program::Buffer& b = program.buffers[static_cast<size_t>(k)];
      ASSERT_TRUE(a.offset + a.bytes() <= b.offset || b.offset + b.bytes() <= a.offset)
          << i << " and " << k;
    }
  }
}

TEST(Assign, WhatLivesAtOneTimeLiesApart) {
  for (const int64_t reach : {1, 7, 100}) {
    program::Program program = copies(400, reach, static_cast<uint64_t>(reach));
    assign_buffers(program);
    expect_apart(program, reach);
  }
}

TEST(Assign, MemoryIsUsedAgain) {
  program::Program program = copies(10'000, 2, 1);
  assign_buffers(program);
  EXPECT_LE(program.temporary_bytes, 4 * 3072);
}

// A loop whose body is a chain of `length` copies: from the carried state through the body's own
// temporaries, and back.
program::Program loop(uint32_t length) {
  program::Program program;
  program.name = "loop";
  const auto buffer = [&](Dims dims, ElementType type) {
    program::Buffer made;
    made.type = type;
    made.dims = std::move(dims);
    program.buffers.push_back(std::move(made));
    return static_cast<program::BufferId>(program.buffers.size() - 1);
  };
  const program::BufferId predicate = buffer({}, ElementType::kPred);
  const program::BufferId go = buffer({}, ElementType::kPred);
  const program::BufferId state = buffer({1024}, ElementType::kU8);
  const program::BufferId first = buffer({1024}, ElementType::kU8);
  program.sequences.resize(3);
  const auto add = [&](size_t sequence, auto action) {
    program.sequences[sequence].steps.emplace_back().action = std::move(action);
  };
  add(0, program::Copy{state, first});
  add(0, program::While{1, 2, predicate});
  add(0, program::Copy{first, state});
  add(1, program::Copy{predicate, go});
  program::BufferId last = state;
  for (uint32_t i = 0; i < length; ++i) {
    const program::BufferId next = buffer({1024}, ElementType::kU8);
    add(2, program::Copy{next, last});
    last = next;
  }
  add(2, program::Copy{state, last});
  return program;
}

TEST(Assign, TemporariesOfALoopsBodyAreUsedAgainWithinIt) {
  program::Program program = loop(20);
  const std::vector<Lifetime> lives = lifetimes_of(program);
  // The state is live throughout the loop and after it; each of the body's own temporaries for two
  // steps.
  EXPECT_LT(lives[2].first, lives[4].first);
  EXPECT_GT(lives[2].last, lives[23].last);
  EXPECT_LT(lives[4].last, lives[23].first);
  assign_buffers(program);
  // Two of them at one time, the state, its initial value, and two predicates.
  EXPECT_LE(program.temporary_bytes, 4 * 1024 + 2 * program::kAlignment);
  const auto apart = [&](program::BufferId a, program::BufferId b) {
    return !program::overlap(program, a, b);
  };
  for (program::BufferId id = 4; id < 24; ++id) {
    EXPECT_TRUE(apart(id, 0) && apart(id, 1) && apart(id, 2) && apart(id, 3)) << id;
    EXPECT_TRUE(apart(id, id - 1)) << id;
  }
}

// If an iteration reads a buffer that the previous iteration wrote, the buffer is live throughout
// the loop, even if no other step uses it.
TEST(Assign, WhatATurnLeavesToTheNextLivesThroughTheLoop) {
  program::Program program = loop(20);
  // The first step of the body reads a temporary that its last step writes.
  std::get<program::Copy>(program.sequences[2].steps.front().action).source = 23;
  assign_buffers(program);
  for (program::BufferId id = 0; id < 23; ++id) {
    EXPECT_FALSE(program::overlap(program, id, 23)) << id;
  }
}

// So many buffers are live at one time that the remaining ones are placed in order of time.
TEST(Assign, ThousandsAtOneTimeLieApartToo) {
  constexpr int64_t kReach = 6000;
  program::Program program = copies(14'000, kReach, 3);
  assign_buffers(program);
  expect_apart(program, kReach);
  int64_t all = 0;
  for (const program::Buffer& buffer : program.buffers) all += buffer.bytes();
  EXPECT_LT(program.temporary_bytes, all);
}

}  // namespace
}  // namespace tenon::hlo
