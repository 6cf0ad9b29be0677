#include "hlo/buffers/assign.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/kernel/ir/builder.h"

namespace tenon::hlo {
namespace {

// A Program of copies alone: step s writes temporary s and reads the one `reach` steps before, so
// that about `reach` of them live at one time.
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

// Temporaries that live at one time do not overlap; `copies` gives their lives.
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

// So many buffers live at one time that the rest are placed in the order of time.
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
