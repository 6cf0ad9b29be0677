// Layers paint memory with `fill` where the device offers it, else copies.
#include "core/backend/layers/paint.h"

#include <gtest/gtest.h>

#include <array>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/layers.h"
#include "core/backend/testing/backend_test_util.h"
#include "core/backend/testing/counting_backend.h"

namespace tenon::backend {
namespace {

class PaintTest : public ::testing::TestWithParam<bool> {
 protected:
  // The bytes at `at`, 16 of them.
  static std::array<uint8_t, 16> read(Device& device, const MemoryAddress& at) {
    std::array<uint8_t, 16> bytes = {};
    auto* const host = reinterpret_cast<std::byte*>(bytes.data());
    EXPECT_TRUE(device.copy(0, MemoryAddress::of_host(host), at, 16).ok());
    EXPECT_EQ(finish(device).message(), "");
    return bytes;
  }

  std::shared_ptr<Backend> backend() {
    return std::make_shared<CountingBackend>(make_interpreter_backend(), counts, GetParam());
  }

  CallCounts counts;
};
INSTANTIATE_TEST_SUITE_P(Fill, PaintTest, ::testing::Bool());

TEST_P(PaintTest, IsOneFillOrCopies) {
  const auto device = backend()->open(0).value();
  const int64_t bytes = 3 * kPatternBytes + 7;
  const MemoryHandle memory = device->allocate(0, bytes + 16).value();
  ASSERT_TRUE(paint(*device, 0, {memory, 0, nullptr}, bytes + 16, std::byte{1}).ok());
  ASSERT_TRUE(paint(*device, 0, {memory, 8, nullptr}, bytes, std::byte{2}).ok());
  ASSERT_TRUE(paint(*device, 0, {memory, 8, nullptr}, 0, std::byte{3}).ok());
  EXPECT_EQ(counts.fills, GetParam() ? 2 : 0);
  EXPECT_EQ(counts.copies, GetParam() ? 0 : 8);
  using Bytes = std::array<uint8_t, 16>;
  EXPECT_EQ(read(*device, {memory, 0, nullptr}),
            (Bytes{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(read(*device, {memory, bytes, nullptr}),
            (Bytes{2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1}));
}

// A canary on either side, and poison between them.
TEST_P(PaintTest, IsWhatValidateDoesBeforeTheFirstUse) {
  const auto device = make_validate_layer(backend())->open(0).value();
  const MemoryHandle memory = device->allocate(0, 64).value();
  EXPECT_EQ(counts.fills + counts.copies, 0);
  const std::array<uint8_t, 16> seen = read(*device, {memory, 0, nullptr});
  EXPECT_EQ(seen[0], 0xA5);
  EXPECT_EQ(seen[15], 0xA5);
  EXPECT_EQ(counts.fills, GetParam() ? 3 : 0);
  EXPECT_EQ(counts.copies, GetParam() ? 0 : 3);
}

// The device is in the host's process.
TEST(HostDevice, FillsWithPatterns) {
  const auto device = make_interpreter_backend()->open(0).value();
  const MemoryHandle memory = device->allocate(0, 64).value();
  const auto filled = [&](std::vector<uint8_t> pattern) {
    EXPECT_TRUE(device->fill(0, {memory, 16, nullptr}, 16, std::as_bytes(std::span(pattern))).ok());
    std::array<uint8_t, 18> bytes = {};
    auto* const host = reinterpret_cast<std::byte*>(bytes.data());
    EXPECT_TRUE(
        device->copy(0, MemoryAddress::of_host(host), {memory, 15, nullptr}, bytes.size()).ok());
    EXPECT_EQ(finish(*device).message(), "");
    return std::vector<uint8_t>(bytes.begin(), bytes.end());
  };
  const std::array<uint8_t, 1> edge = {9};
  ASSERT_TRUE(device->fill(0, {memory, 0, nullptr}, 64, std::as_bytes(std::span(edge))).ok());
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(filled({1}), (Bytes{9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9}));
  EXPECT_EQ(filled({1, 2}), (Bytes{9, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 9}));
  EXPECT_EQ(filled({1, 2, 3, 4}), (Bytes{9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 9}));
  EXPECT_EQ(filled({1, 2, 3, 4, 5, 6, 7, 8}),
            (Bytes{9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(device->fill(99, {memory, 0, nullptr}, 8, std::as_bytes(std::span(edge))).message(),
            "B10: there is no queue 99");
  EXPECT_EQ(device->fill(0, {memory, 60, nullptr}, 8, std::as_bytes(std::span(edge))).message(),
            "B17: 8 bytes at 60 of 64");
}

}  // namespace
}  // namespace tenon::backend
