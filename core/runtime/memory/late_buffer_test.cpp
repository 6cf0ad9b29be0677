#include "core/runtime/memory/late_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::four;
using program::testing::twice;

std::shared_ptr<LateBuffer> late_four(const std::shared_ptr<Device>& device) {
  auto late = LateBuffer::create(device, MemoryKind::kDevice, four(0).shape());
  EXPECT_TRUE(late) << late.error().to_string();
  return *late;
}

// A reader that is posted as soon as the last piece was handed over comes behind all of them.
TEST(LateBuffer, ReadersComeBehindAllPieces) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const auto executable = load(*client, twice());
  const Literal literal = four(2);
  const std::span<const std::byte> bytes = literal.data();
  for (int i = 0; i < 100; ++i) {
    const auto late = late_four(device);
    EXPECT_FALSE(late->given().is_ready());
    std::thread writer([&] {
      for (int64_t at = 12; at >= 0; at -= 4) {
        const auto read = late->write(bytes.subspan(static_cast<size_t>(at), 4), at, at == 0);
        ASSERT_TRUE(read) << read.error().to_string();
        EXPECT_EQ(read->await().message(), "");
      }
    });
    EXPECT_TRUE(late->given().await().ok());
    const auto run = executable->execute(std::vector{late->buffer()});
    writer.join();
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_EQ(get(run->results[0]), four(6));
  }
}

TEST(LateBuffer, ErrorsReachReaders) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const auto executable = load(*client, twice());
  auto late = late_four(device);
  const BufferPtr buffer = late->buffer();
  const Literal literal = four(2);
  ASSERT_TRUE(late->write(literal.data().first(8), 0, false));
  late = nullptr;
  EXPECT_EQ(buffer->defined().await().message(),
            "the contents of the array were never handed over");
  const auto run = executable->execute(std::vector{buffer});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->done.await().code(), ErrorCode::kCancelled);
}

TEST(LateBuffer, TakesTheContentsOfAnother) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  const auto late = late_four(device);
  const BufferPtr source = put(device, four(5));
  EXPECT_EQ(late->fill(*source).message(), "");
  source->remove();
  EXPECT_TRUE(late->given().await().ok());
  EXPECT_EQ(get(late->buffer()), four(5));
  EXPECT_EQ(late->fill(*late->buffer()).message(), "f32[4] has contents already");
  const auto gone = late_four(device);
  EXPECT_EQ(gone->fill(*source).code(), ErrorCode::kFailedPrecondition);
  EXPECT_FALSE(gone->given().is_ready()) << "another source may fill it";
}

TEST(LateBuffer, PartsOfAnArrayAreRead) {
  const auto client = client_of();
  const BufferPtr buffer = put(client->devices()[0], four(7));
  std::array<float, 2> read = {};
  const std::span to = std::as_writable_bytes(std::span(read));
  EXPECT_EQ(buffer->copy_part_to_host(to, 8).await().message(), "");
  const auto whole = get(buffer);
  EXPECT_EQ(std::memcmp(read.data(), whole.data().data() + 8, 8), 0);
  EXPECT_EQ(buffer->copy_part_to_host(to, 12).await().message(),
            "8 bytes at 12 of f32[4], which has 16");
}

TEST(Promise, CallsBackItselfWithoutAPool) {
  Promise promise;
  std::thread::id heard;
  promise.event().on_ready([&](const Status&) { heard = std::this_thread::get_id(); });
  promise.set({});
  EXPECT_EQ(heard, std::this_thread::get_id());
}

}  // namespace
}  // namespace tenon::runtime
