#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "core/backend/driver/kept.h"
#include "core/backend/driver/memory_account.h"
#include "core/backend/driver/narrowing.h"
#include "core/backend/driver/waiting.h"
#include "core/backend/in_process/host_queue.h"

namespace tenon::backend {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

TEST(StopRelay, KernelsHearOfAFlagOnce) {
  uint32_t word = 7;
  volatile uint32_t first = 0;
  volatile uint32_t second = 0;
  StopRelay stop(&word);
  EXPECT_EQ(word, 0U);
  stop.add(nullptr);
  stop.add(&first);
  stop.add(&second);
  stop.relay();
  EXPECT_EQ(word, 0U);
  EXPECT_TRUE(stop.outcome().ok());
  second = 1;
  EXPECT_TRUE(stop.is_wanted());
  EXPECT_EQ(stop.outcome().code(), ErrorCode::kCancelled);
  EXPECT_EQ(word, 0U);
  stop.relay();
  EXPECT_EQ(word, 1U);
}

TEST(StopRelay, ADeviceThatIsClosedStopsKernelsWithoutAFlag) {
  uint32_t word = 0;
  StopRelay(&word).stop_kernels();
  EXPECT_EQ(word, 1U);
  StopRelay().stop_kernels();  // Without a word nothing can be told.
  EXPECT_EQ(StopRelay().word(), nullptr);
}

TEST(CompletionSignal, AsksOnceWithoutATimeLimit) {
  int asked = 0;
  const auto never = [&]() -> Result<bool> { return ++asked, false; };
  EXPECT_EQ(CompletionSignal().await(0, {.pause = 1h}, never).value(), false);
  EXPECT_EQ(asked, 1);
}

TEST(CompletionSignal, TheTimeLimitEndsAPause) {
  const auto start = steady_clock::now();
  const auto never = []() -> Result<bool> { return false; };
  EXPECT_EQ(CompletionSignal().await(2'000'000, {.pause = 1h}, never).value(), false);
  EXPECT_GE(steady_clock::now() - start, 2ms);
}

TEST(CompletionSignal, AsksAgainAfterEachPauseWhichDoubles) {
  int asked = 0;
  const auto third = [&]() -> Result<bool> { return ++asked == 3; };
  const auto start = steady_clock::now();
  EXPECT_EQ(CompletionSignal().await(-1, {.pause = 2ms, .longest = 1h}, third).value(), true);
  EXPECT_EQ(asked, 3);
  EXPECT_GE(steady_clock::now() - start, 6ms);
}

TEST(CompletionSignal, AsksWithoutAPauseAtFirst) {
  int asked = 0;
  const auto often = [&]() -> Result<bool> { return ++asked == 100; };
  EXPECT_EQ(CompletionSignal().await(-1, {.busy = 1h, .pause = 1h}, often).value(), true);
}

TEST(CompletionSignal, AnErrorEndsIt) {
  const auto fails = []() -> Result<bool> { return internal_error("the device is lost"); };
  EXPECT_EQ(CompletionSignal().await(-1, {.pause = 1h}, fails).error().message(),
            "the device is lost");
}

TEST(CompletionSignal, ACallbackEndsAPause) {
  CompletionSignal signal;
  std::atomic<bool> done = false;
  std::thread driver([&] {
    std::this_thread::sleep_for(5ms);
    done = true;
    signal.raise();
  });
  const auto ask = [&]() -> Result<bool> { return done.load(); };
  EXPECT_EQ(signal.await(-1, {.pause = 1h}, ask).value(), true);
  driver.join();
}

TEST(MemoryAccount, RefusesWhatThereIsNot) {
  MemoryAccount account(100);
  std::optional<MemoryAccount::Share> first = account.take(60).value();
  EXPECT_EQ(account.in_use(), 60);
  const auto refused = account.take(41);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.error().message(), "41 bytes are asked for, 60 of 100 are in use");
  MemoryAccount::Share moved = *std::move(first);
  first.reset();
  EXPECT_EQ(account.in_use(), 60);
  moved = {};
  EXPECT_EQ(account.in_use(), 0);
}

TEST(MemoryAccount, HasNoLimitAndMayEndBeforeItsShares) {
  auto account = std::make_unique<MemoryAccount>();
  const MemoryAccount::Share share = account->take(int64_t{1} << 50).value();
  EXPECT_EQ(account->in_use(), int64_t{1} << 50);
  account.reset();
}

TEST(KeptValues, MakesAValueOncePerKeyAndKeepsNoErrors) {
  KeptValues<int, std::string> kept(2);
  int made = 0;
  const auto make = [&]() -> Result<std::string> { return std::to_string(++made); };
  EXPECT_FALSE(kept.get(1, []() -> Result<std::string> { return internal_error("no"); }));
  EXPECT_EQ(kept.get(1, make).value(), "1");
  EXPECT_EQ(kept.get(1, make).value(), "1");
  EXPECT_EQ(kept.get(2, make).value(), "2");
  EXPECT_EQ(kept.get(1, make).value(), "1");
  EXPECT_EQ(kept.get(3, make).value(), "3");  // Forgets the two.
  EXPECT_EQ(kept.get(1, make).value(), "4");
}

TEST(Handles, SayWhatIsNotThere) {
  Handles<int> events;
  const uint64_t handle = events.add(std::make_shared<int>(5));
  EXPECT_EQ(*events.get(handle, "event").value(), 5);
  const auto none = events.get(handle + 1, "event");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message(), "B10: there is no event 2");
}

class Narrowing : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const char* value) {
    set_.push_back("TENON_NARROW_" + name);
    setenv(set_.back().c_str(), value, /*overwrite=*/1);
  }
  static TargetInfo stated() {
    TargetInfo target;
    target.features = kernel::TargetFeatures::parse("s64,u64,f64,convert_f16,atomics").value();
    target.preferred_lanes = 128;
    target.most_lanes = 256;
    target.spaces[0].host_visible = true;
    target.queues = 3;
    return target;
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(Narrowing, ChangesNothingWithoutVariables) {
  TargetInfo target = stated();
  ASSERT_TRUE(narrow(target, "TENON_NARROW").ok());
  EXPECT_EQ(to_string(target), to_string(stated()));
}

TEST_F(Narrowing, TakesAwayWhatVariablesSay) {
  set("LANES", "512");
  set("SCRATCH", "4096");
  set("MEMORY", "1000");
  set("ALIGNMENT", "16");
  set("QUEUES", "1");
  set("WITHOUT", "f64,s64,f16,atomics,svm,calls");
  TargetInfo target = stated();
  ASSERT_TRUE(narrow(target, "TENON_NARROW").ok());
  TargetInfo wanted;
  wanted.features = kernel::TargetFeatures::parse("").value();
  wanted.features.fma = target.features.fma;
  wanted.preferred_lanes = 512;
  wanted.most_lanes = 512;
  wanted.scratch_bytes = 4096;
  wanted.spaces[0].bytes = 1000;
  wanted.spaces[0].alignment = 16;
  EXPECT_EQ(to_string(target), to_string(wanted));
}

TEST_F(Narrowing, RefusesWhatIsNoNumber) {
  set("LANES", "many");
  TargetInfo target;
  EXPECT_EQ(narrow(target, "TENON_NARROW").message(),
            "TENON_NARROW_LANES is 'many', expected a number from 1 on");
}

}  // namespace
}  // namespace tenon::backend
