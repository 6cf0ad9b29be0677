// Calls of a device that do not return within the time limit.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>

#include "core/backend/layers/forward.h"
#include "core/runtime/runtime_test_util.h"
#include "core/runtime/submission/watchdog.h"

namespace tenon::runtime {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using program::testing::four;
using program::testing::twice;

enum class Function : uint8_t { kNone, kLaunch, kCopy, kRecord };

// The function of a device that hangs, and the events, besides the test, that end the hang.
struct Hanging {
  std::mutex mutex;
  std::condition_variable changed;
  Function function = Function::kNone;
  bool polls = false;   // The stop flag (B27).
  bool aborts = false;  // It offers abort.
  bool ended = false;
  int aborted = 0;
  std::chrono::milliseconds slowness{0};  // Time of each launch.
  std::atomic<int> slow = 0;

  void begin(Function which) {
    const std::lock_guard lock(mutex);
    function = which;
    ended = false;
  }
  void end() {
    const std::lock_guard lock(mutex);
    function = Function::kNone;
    ended = true;
    changed.notify_all();
  }
};

class HangingDevice final : public backend::ForwardingDevice {
 public:
  HangingDevice(std::unique_ptr<Device> inner, std::shared_ptr<Hanging> hanging)
      : ForwardingDevice(std::move(inner)), hanging_(std::move(hanging)) {}

  Status copy(uint32_t queue, const backend::MemoryAddress& to, const backend::MemoryAddress& from,
              int64_t bytes) override {
    TENON_TRY(hang(Function::kCopy));
    return ForwardingDevice::copy(queue, to, from, bytes);
  }
  Status launch(uint32_t queue, const backend::KernelLaunch& launch) override {
    TENON_TRY(hang(Function::kLaunch, launch.stop));
    if (hanging_->slowness.count() > 0) {
      std::this_thread::sleep_for(hanging_->slowness);
      ++hanging_->slow;
    }
    return ForwardingDevice::launch(queue, launch);
  }
  Result<backend::EventHandle> record(uint32_t queue) override {
    TENON_TRY(hang(Function::kRecord));
    return ForwardingDevice::record(queue);
  }
  Status abort() override {
    if (!hanging_->aborts) return ForwardingDevice::abort();
    ++hanging_->aborted;
    hanging_->end();
    return {};
  }

 private:
  Status hang(Function function, const volatile uint32_t* stop = nullptr) {
    std::unique_lock lock(hanging_->mutex);
    if (hanging_->function != function) return {};
    const auto over = [&] {
      return hanging_->ended ||
             (hanging_->polls && stop != nullptr && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0);
    };
    while (!over()) hanging_->changed.wait_for(lock, std::chrono::milliseconds(1));
    return Status(ErrorCode::kCancelled, "the call was ended");
  }

  const std::shared_ptr<Hanging> hanging_;
};

class HangingBackend final : public backend::ForwardingBackend {
 public:
  explicit HangingBackend(std::shared_ptr<Hanging> hanging)
      : ForwardingBackend(backend::make_interpreter_backend()), hanging_(std::move(hanging)) {}
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(auto device, ForwardingBackend::open(index));
    return std::make_unique<HangingDevice>(std::move(device), hanging_);
  }

 private:
  const std::shared_ptr<Hanging> hanging_;
};

const Status kLost(ErrorCode::kUnavailable, kTooLong);

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() {
    client = *Client::open(backend, limit_of(100));
    executable = load(*client, twice());
    x = put(client->devices()[0], four(1));
    EXPECT_TRUE(x->defined().await().ok());
  }
  ~WatchdogTest() override { hanging->end(); }

  // Everything that is waited for ends with the loss, begun or not; but work may be done that does
  // not come behind a copy which hangs on a queue of its own.
  void expect_lost(bool copies_first = false) {
    Event copied = Event::ready();
    if (copies_first) copied = x->copy_to_host(memory);
    const auto run = executable->execute(std::vector{x});
    if (!copies_first) copied = (run ? run->results[0] : x)->copy_to_host(memory);
    const bool may_be_done = copies_first && client->devices()[0]->info().target.queues > 1;
    if (run && !(may_be_done && run->done.await().ok())) {
      // It names the launch if that has returned.
      EXPECT_EQ(run->done.await().message().substr(0, kLost.message().size()), kTooLong);
      EXPECT_EQ(run->done.await().code(), ErrorCode::kUnavailable);
      EXPECT_EQ(run->results[0]->defined().await(), run->done.await());
    } else if (!run) {
      EXPECT_EQ(run.error(), kLost);
    }
    EXPECT_EQ(copied.await(), kLost);
    EXPECT_EQ(client->devices()[0]->lost(), kLost);
    EXPECT_EQ(executable->execute(std::vector{x}).error(), kLost);
    EXPECT_EQ(client->devices()[0]->drain(), kLost);
  }

  const std::shared_ptr<Hanging> hanging = std::make_shared<Hanging>();
  const std::shared_ptr<HangingBackend> backend = std::make_shared<HangingBackend>(hanging);
  std::shared_ptr<Client> client;
  std::shared_ptr<Executable> executable;
  BufferPtr x;
  std::array<std::byte, 16> memory = {};
};

TEST_F(WatchdogTest, ALaunchThatPollsTheStopFlag) {
  hanging->polls = true;
  hanging->begin(Function::kLaunch);
  expect_lost();
  hanging->end();
  expect_runs(*Client::open(backend, limit_of(1000)));
}

TEST_F(WatchdogTest, ALaunchThatAbortEnds) {
  hanging->aborts = true;
  hanging->begin(Function::kLaunch);
  expect_lost();
  EXPECT_EQ(hanging->aborted, 1);
  expect_runs(*Client::open(backend, limit_of(1000)));
}

// The thread is left, and what it uses is kept, until the call returns; then the device is closed.
TEST_F(WatchdogTest, CallsThatNothingEnds) {
  for (const Function function : {Function::kLaunch, Function::kCopy, Function::kRecord}) {
    SCOPED_TRACE(static_cast<int>(function));
    hanging->begin(function);
    expect_lost(/*copies_first=*/function == Function::kCopy);
    executable = nullptr;
    x = nullptr;
    client = nullptr;
    ClientOptions at_once;
    at_once.limits.open_wait = 1;
    EXPECT_EQ(Client::open(backend, at_once).error().code(), ErrorCode::kAlreadyExists);
    hanging->end();
    expect_runs(*Client::open(backend, limit_of(1000)));
    client = *Client::open(backend, limit_of(100));
    executable = load(*client, twice());
    x = put(client->devices()[0], four(1));
    ASSERT_TRUE(x->defined().await().ok());
  }
}

// No call is too long, but both together are.
TEST_F(WatchdogTest, TheCallsOfAPieceOfWorkCountTogether) {
  hanging->slowness = std::chrono::milliseconds(60);
  expect_lost();
  EXPECT_GE(hanging->slow, 2);
}

// Time counts from the end of the work before, even while the callback of that work still runs.
TEST_F(WatchdogTest, TheCallsOfAPieceOfWorkCountFromTheEndOfWorkBefore) {
  const auto device = client->devices()[0];
  std::atomic<bool> heard = false;
  std::atomic<bool> go = false;
  device->post([] { return Status(); },
               [&](const Status&) {
                 heard = true;
                 while (!go) std::this_thread::yield();
               });
  while (!heard) std::this_thread::yield();
  hanging->slowness = std::chrono::milliseconds(60);
  const auto run = executable->execute(std::vector{x});
  while (device->lost().ok() && hanging->slow < 2) std::this_thread::yield();
  go = true;
  if (run) {
    EXPECT_EQ(run->done.await().code(), ErrorCode::kUnavailable);
  } else {
    EXPECT_EQ(run.error(), kLost);
  }
  EXPECT_EQ(device->lost(), kLost);
}

TEST(Watchdog, ALimitMayBeBehindTheEndOfTime) {
  std::atomic<bool> is_late = false;
  Watchdog watchdog([&] { is_late = true; });
  watchdog.begin(INT64_MAX);
  EXPECT_FALSE(watchdog.await_end(20'000'000));
  EXPECT_EQ(watchdog.end(), Watchdog::End::kInTime);
  EXPECT_FALSE(is_late);
}

}  // namespace
}  // namespace tenon::runtime
