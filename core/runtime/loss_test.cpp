// Devices that hang or are lost, and devices that several clients want to open at once.
#include <gtest/gtest.h>

#include <cstring>

#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/runtime/runtime_test_util.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::control_flow;
using program::testing::four;
using program::testing::twice;

// Misbehaviour of a device that a test turns on.
struct Trouble {
  std::atomic<bool> hangs = false;  // Work is not begun and events stay pending …
  std::atomic<int> late = 0;        // … until close does this many copies.
  std::atomic<bool> mute = false;   // No event can be recorded.
  std::atomic<bool> away = false;   // It cannot be opened.
  std::atomic<int> vague = 0;  // For this many calls, await does not say whether an event is done.
  std::atomic<int64_t> closed = 0;
};

class TroubledDevice final : public backend::ForwardingDevice {
 public:
  TroubledDevice(std::unique_ptr<Device> inner, std::shared_ptr<Trouble> trouble)
      : ForwardingDevice(std::move(inner)), trouble_(std::move(trouble)) {}
  ~TroubledDevice() override {
    for (const auto& [place, bytes] : late_) {
      std::memset(place.host, 0xee, static_cast<size_t>(bytes));
      ++trouble_->late;
    }
    ++trouble_->closed;
  }

  Status copy(uint32_t queue, const backend::MemoryAddress& to, const backend::MemoryAddress& from,
              int64_t bytes) override {
    if (!trouble_->hangs) return ForwardingDevice::copy(queue, to, from, bytes);
    if (to.on_host()) late_.emplace_back(to, bytes);
    return {};
  }
  Result<backend::EventHandle> record(uint32_t queue) override {
    if (trouble_->mute) return internal_error("out of events");
    return ForwardingDevice::record(queue);
  }
  Result<bool> await(backend::EventHandle event, int64_t timeout) override {
    if (trouble_->vague > 0) {
      --trouble_->vague;
      return false;
    }
    if (!trouble_->hangs) return ForwardingDevice::await(event, timeout);
    EXPECT_GE(timeout, 0) << "a wait without limit for a device that hangs";
    std::this_thread::sleep_for(std::chrono::nanoseconds(timeout));
    return false;
  }

 private:
  const std::shared_ptr<Trouble> trouble_;
  std::vector<std::pair<backend::MemoryAddress, int64_t>> late_;
};

class TroubledBackend final : public backend::ForwardingBackend {
 public:
  explicit TroubledBackend(std::shared_ptr<Trouble> trouble)
      : ForwardingBackend(backend::make_interpreter_backend()), trouble_(std::move(trouble)) {}
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    if (trouble_->away) return make_error(ErrorCode::kUnavailable, "no chip answers");
    TENON_ASSIGN(auto device, ForwardingBackend::open(index));
    return std::make_unique<TroubledDevice>(std::move(device), trouble_);
  }

 private:
  const std::shared_ptr<Trouble> trouble_;
};

// The first client and its objects stay; a new client opens the device again.
TEST(Loss, ALaunchPastTheTimeLimit) {
  const auto backend = std::shared_ptr<backend::Backend>(backend::make_interpreter_backend());
  const auto client = *Client::open(backend, limit_of(100));
  const auto executable = load(*client, endless());
  const auto x = put(client->devices()[0], four(1));
  const auto run = executable->execute(std::vector{x});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->done.await(), Status(ErrorCode::kUnavailable, kTooLong));
  EXPECT_EQ(x->to_literal().error().message(), kTooLong);
  EXPECT_EQ(executable->execute(std::vector{x}).error().message(), kTooLong);
  expect_runs(*Client::open(backend, limit_of(1000)));
}

TEST(Loss, ALoopThatTheHostWalks) {
  const auto backend = std::shared_ptr<backend::Backend>(backend::make_interpreter_backend());
  const auto client = *Client::open(backend, limit_of(100));
  // Twice a negative number is never 10.
  const auto run =
      load(*client, control_flow())->execute(std::vector{put(client->devices()[0], four(-1))});
  EXPECT_EQ(run->done.await(), Status(ErrorCode::kUnavailable, kTooLong));
  expect_runs(*Client::open(backend, limit_of(1000)));
}

// When a hanging device is closed, it may still write to memory that it was given, long after the
// caller's memory is freed (the address sanitizer checks it).
TEST(Loss, AHangingDeviceHasNoMemoryOfTheCaller) {
  const auto trouble = std::make_shared<Trouble>();
  const auto backend = std::make_shared<TroubledBackend>(trouble);
  auto client = *Client::open(backend, limit_of(100));
  const auto executable = load(*client, control_flow());
  const auto x = put(client->devices()[0], four(3));
  ASSERT_TRUE(x->defined().await().ok());
  trouble->hangs = true;
  auto memory = std::make_unique<std::array<std::byte, 16>>();
  const Event copied = x->copy_to_host(*memory);
  const auto run = executable->execute(std::vector{x});  // Reads a predicate.
  const auto moved = x->copy_to(client->devices()[0], MemoryKind::kPinnedHost);
  EXPECT_EQ(copied.await(), Status(ErrorCode::kUnavailable, kTooLong));
  memory = nullptr;
  EXPECT_FALSE(run && run->done.await().ok());
  EXPECT_FALSE(moved && (*moved)->defined().await().ok());
  trouble->hangs = false;
  expect_runs(*Client::open(backend, limit_of(1000)));
  EXPECT_GE(trouble->late, 1);
}

TEST(Loss, ADeviceWithoutEvents) {
  const auto trouble = std::make_shared<Trouble>();
  const auto backend = std::make_shared<TroubledBackend>(trouble);
  const auto client = *Client::open(backend);
  const auto executable = load(*client, twice());
  const auto x = put(client->devices()[0], four(1));
  ASSERT_TRUE(x->defined().await().ok());
  trouble->mute = true;
  EXPECT_EQ(x->to_literal().error(),
            Status(ErrorCode::kUnavailable, "interp:0: no event can be recorded: out of events"));
  EXPECT_EQ(trouble->closed, 1);  // So it does not write memory that `to_literal` has freed.
  EXPECT_FALSE(executable->execute(std::vector{x}));
  trouble->mute = false;
  expect_runs(*Client::open(backend));
}

// The client opens a lost device again; what was on it stays lost.
TEST(Loss, ADeviceComesBack) {
  const auto trouble = std::make_shared<Trouble>();
  const auto client = *Client::open(std::make_shared<TroubledBackend>(trouble));
  const std::shared_ptr<Device> first = client->devices()[0];
  const auto executable = load(*client, twice());
  const auto x = put(first, four(1));
  ASSERT_TRUE(x->defined().await().ok());
  EXPECT_EQ(*client->live_device(0), first);
  trouble->mute = true;
  EXPECT_EQ(x->to_literal().error().code(), ErrorCode::kUnavailable);
  trouble->mute = false;
  trouble->away = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client->live_device(0).error(),
              Status(ErrorCode::kUnavailable,
                     "interp:0: no event can be recorded: out of events; it cannot be opened again "
                     "now: no chip answers"));
  }
  EXPECT_EQ(client->last_device(0), first);
  trouble->away = false;
  const auto back = client->live_device(0);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_NE(*back, first);
  EXPECT_EQ(*client->live_device(0), *back);
  EXPECT_EQ(client->last_device(0), *back);
  const auto again = executable->reload(*back);
  ASSERT_TRUE(again) << again.error().to_string();
  const auto run = (*again)->execute(std::vector{put(*back, four(1))});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(get(run->results[0]), four(3));
  EXPECT_EQ(x->to_literal().error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ((*again)->execute(std::vector{x}).error().message(),
            fmt::format("{}: argument 0 was on a device that is lost: interp:0: no event can be "
                        "recorded: out of events",
                        twice().name));
}

// A view of a device's memory keeps the device open but blocks nobody; nor does a view of contents
// that are never defined.
TEST(Loss, ADeviceThatIsViewed) {
  const auto trouble = std::make_shared<Trouble>();
  const auto backend = std::make_shared<TroubledBackend>(trouble);
  const auto client = *Client::open(backend);
  const auto executable = load(*client, twice());
  const auto x = put(client->devices()[0], four(1));
  ASSERT_TRUE(x->defined().await().ok());
  ASSERT_TRUE(x->hold().ok());
  const std::byte* const data = x->host_address().value();
  trouble->mute = true;
  const auto run = executable->execute(std::vector{x});
  ASSERT_TRUE(run);
  static_cast<void>(run->results[0]->hold());
  EXPECT_EQ(run->results[0]->defined().await().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(x->to_literal().error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(trouble->closed, 0);
  EXPECT_EQ(std::memcmp(data, four(1).data().data(), 16), 0);
  run->results[0]->release();
  x->release();
  trouble->mute = false;
  expect_runs(*Client::open(backend));
  EXPECT_GE(trouble->closed, 1);
}

// Memory of work is kept until its event is known to be done; the event is awaited again.
TEST(Loss, ADeviceThatDoesNotSayWhatIsDone) {
  const auto trouble = std::make_shared<Trouble>();
  const auto backend = std::make_shared<TroubledBackend>(trouble);
  const auto client = *Client::open(backend);
  const auto x = put(client->devices()[0], four(1));
  ASSERT_TRUE(x->defined().await().ok());
  trouble->vague = 2;
  EXPECT_EQ(get(x), four(1));
  trouble->vague = 4;
  EXPECT_EQ(x->to_literal().error(),
            Status(ErrorCode::kUnavailable,
                   "interp:0: await does not say whether work is done (B25); the device counts as "
                   "lost"));
  EXPECT_EQ(trouble->closed, 1);
  expect_runs(*Client::open(backend));
}

TEST(Loss, IsOfTheDeviceThatSaysSo) {
  const auto client = client_of();
  program::Program p = twice();
  p.sequences[0].steps = {{program::CustomCall{"mine", {}, {0}, {2}}, {}, "the call"}};
  find_dependencies(p);
  const auto executable =
      load(*client, p, {},
           {{"mine",
             [](const program::Step&, const program::CustomCall&, const std::vector<Literal>&,
                const std::vector<Shape>&) -> Result<std::vector<Literal>> {
               return make_error(ErrorCode::kUnavailable, "another machine is gone");
             }}});
  const auto x = put(client->devices()[0], four(1));
  const auto run = executable->execute(std::vector{x});
  EXPECT_EQ(run->done.await().message(), "another machine is gone (in the call)");
  EXPECT_TRUE(client->devices()[0]->lost().ok());
  EXPECT_EQ(get(x), four(1));
}

TEST(Loss, ADeviceIsOpenOnce) {
  const auto backend = std::shared_ptr<backend::Backend>(backend::make_interpreter_backend());
  ClientOptions options;
  options.limits.open_wait = kMillisecond;
  auto client = Client::open(backend, options);
  ASSERT_TRUE(client);
  const auto second = Client::open(backend::make_validate_layer(backend), options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(),
            Status(ErrorCode::kAlreadyExists,
                   "interp:0 is open already, by another client of this process (B11)"));
  client = second;
  EXPECT_TRUE(Client::open(backend, options));
}

TEST(Loss, DonationsAndReadersOfOneBuffer) {
  const auto client = client_of();
  const auto device = client->devices()[0];
  program::Program taking = twice();
  taking.donated = {0};
  const auto takes = load(*client, taking);
  const auto reads = load(*client, twice());
  for (int i = 0; i < 200; ++i) {
    const auto x = put(device, four(5));
    std::thread reader([&] {
      const auto run = reads->execute(std::vector{x});
      if (run) {
        EXPECT_EQ(get(run->results[0]), four(15));
      } else {
        EXPECT_EQ(run.error().code(), ErrorCode::kFailedPrecondition);
      }
    });
    const auto run = takes->execute(std::vector{x});
    reader.join();
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_EQ(get(run->results[0]), four(15));
  }
}

// Blocks are returned to the backend only when no work uses them, even while other threads work.
TEST(Loss, TrimmingWhileOthersWork) {
  backend::InterpreterConfig small;
  small.memory_bytes = 16384;
  const auto client = *Client::open(
      backend::make_validate_layer(std::shared_ptr(backend::make_interpreter_backend(small))));
  const auto device = client->devices()[0];
  const auto executable = load(*client, twice());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        if (t == 0) {
          EXPECT_EQ(device->memory().trim().to_string(), "OK");
          continue;
        }
        const auto run = executable->execute(std::vector{put(device, four(i))});
        ASSERT_TRUE(run) << run.error().to_string();
        EXPECT_EQ(get(run->results[0]), four(3 * i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon::runtime
