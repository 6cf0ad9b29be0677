// Memory that several queues use: each suballocation knows the last work that used it before.
#include "core/runtime/memory/allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/backend/interpreter/interpreter.h"
#include "core/base/random.h"

namespace tenon::runtime {
namespace {

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest() {
    Allocator::AllocatorDevice of;
    of.use = [this]() -> Result<std::shared_ptr<backend::Device>> { return device; };
    of.one_at_a_time = &one_at_a_time;
    of.drain = [] { return Status(); };
    of.note_loss = [](Status status) { return status; };
    of.computed = counts;
    allocator = std::make_shared<Allocator>(of, 0, backend->devices().value()[0].target.spaces[0]);
  }

  std::shared_ptr<Suballocation> allocate(int64_t bytes, QueueRole user = QueueRole::kCompute) {
    return allocator->allocate(bytes, "an array", user).value();
  }

  const std::shared_ptr<QueueCounts> counts = std::make_shared<QueueCounts>();
  const std::shared_ptr<backend::Backend> backend = backend::make_interpreter_backend();
  const std::shared_ptr<backend::Device> device = backend->open(0).value();
  std::mutex one_at_a_time;
  std::shared_ptr<Allocator> allocator;
};

TEST_F(SharedMemoryTest, AnUploadTakesMemoryThatNothingUsesAnyMore) {
  auto first = allocate(64);
  const int64_t offset = first->place().offset;
  counts->begun = 3;
  first = nullptr;
  // Work of the queue itself takes the piece that fits best; an upload does not wait for it.
  EXPECT_EQ(allocate(64)->place().offset, offset);
  EXPECT_EQ(allocate(64)->free_after().serial, 3);
  EXPECT_NE(allocate(64, QueueRole::kUpload)->place().offset, offset);
  EXPECT_EQ(allocate(64, QueueRole::kUpload)->free_after().serial, 0);
  counts->done = 3;
  EXPECT_EQ(allocate(64, QueueRole::kUpload)->place().offset, offset);
}

// Pieces that are apart until their work is done are joined where nothing else is large enough.
TEST_F(SharedMemoryTest, NeighboursAreJoinedWhenTheyAreNeeded) {
  allocate(64);
  const int64_t reserved = allocator->statistics().bytes_reserved;
  auto half = allocate(reserved / 2);
  auto rest = allocate(reserved / 2);
  counts->begun = 1;
  rest = nullptr;
  counts->begun = 2;
  half = nullptr;
  counts->begun = 3;
  EXPECT_EQ(allocate(reserved)->free_after().serial, 2);
  EXPECT_EQ(allocate(reserved, QueueRole::kUpload)->free_after().serial, 3);
  EXPECT_EQ(allocator->statistics().bytes_reserved, reserved);
  EXPECT_TRUE(allocator->trim().ok());
  EXPECT_EQ(allocator->statistics().bytes_reserved, 0);
}

// No memory is given out twice, and its last use is no earlier than that of any byte of it.
TEST_F(SharedMemoryTest, AtRandom) {
  constexpr int64_t kUnit = 64;
  Random random(7);
  std::map<std::pair<backend::MemoryHandle, int64_t>, int64_t> last_use;  // By unit; -1: in use.
  std::vector<std::shared_ptr<Suballocation>> held;
  const auto for_each_unit = [&](const Suballocation& each, const auto& visit) {
    for (int64_t at = 0; at < each.bytes(); at += kUnit) {
      visit(last_use[{each.place().memory, each.place().offset + at}]);
    }
  };
  for (int i = 0; i < 20'000; ++i) {
    if (random.one_in(3)) ++counts->begun;
    if (random.one_in(4)) counts->done = random.between(counts->done, counts->begun);
    if (!held.empty() && random.below(100) < (held.size() > 200 ? 90 : 45)) {
      std::swap(held[static_cast<size_t>(random.below(std::ssize(held)))], held.back());
      for_each_unit(*held.back(), [&](int64_t& use) { use = counts->begun; });
      held.pop_back();
      continue;
    }
    const int64_t bytes = kUnit * random.between(1, random.one_in(50) ? 4000 : 40);
    held.push_back(allocate(bytes, random.one_in(2) ? QueueRole::kUpload : QueueRole::kCompute));
    for_each_unit(*held.back(), [&](int64_t& use) {
      ASSERT_GE(use, 0);
      ASSERT_LE(use, held.back()->free_after().serial);
      use = -1;
    });
  }
  held.clear();
  EXPECT_EQ(allocator->statistics().bytes_in_use, 0);
  EXPECT_TRUE(allocator->trim().ok());
  EXPECT_EQ(allocator->statistics().bytes_reserved, 0);
}

}  // namespace
}  // namespace tenon::runtime
