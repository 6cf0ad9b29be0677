// The backend `interp` without layers: its answers to calls that break the rules.
#include "core/backend/interpreter/interpreter.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "core/backend/testing/backend_test_util.h"

namespace tenon::backend {
namespace {

class InterpTest : public OnDevice {
 protected:
  InterpTest() { open(make_interpreter_backend(), 16, 64); }
};

TEST_F(InterpTest, RunsAKernel) {
  const std::array<float, 4> from = {1, 2, 3, 4};
  std::array<float, 4> to = {};
  const auto* bytes = reinterpret_cast<const std::byte*>(from.data());
  ASSERT_TRUE(device->copy(0, {x, 0, nullptr}, MemoryAddress::of_host(bytes), 16).ok());
  ASSERT_TRUE(launch({{x, 0, nullptr}, {y, 16, nullptr}}).ok());
  ASSERT_TRUE(device
                  ->copy(0, MemoryAddress::of_host(reinterpret_cast<std::byte*>(to.data())),
                         {y, 16, nullptr}, 16)
                  .ok());
  const EventHandle event = device->record(0).value();
  EXPECT_TRUE(device->await(event, -1).value());
  EXPECT_EQ(to, (std::array<float, 4>{2, 3, 4, 5}));
  const EventTimes times = device->event_times(event).value();
  EXPECT_GT(times.start.value(), 0);
  EXPECT_GE(times.end, *times.start);
  device->release(event);
  std::memcpy(to.data(), device->map(x).value(), 16);
  EXPECT_EQ(to, from);
}

TEST_F(InterpTest, CallsThatBreakRulesAreErrors) {
  EXPECT_EQ(launch({{x, 0, nullptr}}).message(), "B21: @k takes 2 buffers and 0 scalars");
  EXPECT_EQ(launch({{x, 4, nullptr}, {y, 0, nullptr}}).message(), "B17: 16 bytes at 4 of 16");
  EXPECT_EQ(launch({{77, 0, nullptr}, {y, 0, nullptr}}).message(), "B10: no such memory");
  KernelLaunch other;
  other.module = module;
  other.kernel = 1;
  EXPECT_EQ(device->launch(0, other).message(), "B14: a launch of a kernel that is not loaded");
  EXPECT_EQ(device->record(99).error().message(), "B10: there is no queue 99");
  EXPECT_EQ(device->await(9, 0).error().message(), "B10: no such event");
  EXPECT_EQ(device->allocate(0, 0).error().message(),
            "B16: an allocation of 0 bytes, or in an unknown space");
  EXPECT_EQ(backend->open(1).error().message(), "interp: there is no device 1");
  EXPECT_EQ(device->load("TNIP", {}).error().code(), ErrorCode::kDataLoss);
  EXPECT_EQ(device->load(binary, {}).error().message(),
            "B14: the binary has a different number of kernels");
}

// An empty box occupies no memory, for any strides.
TEST_F(InterpTest, CopiesBoxesWithinMemory) {
  Box box = {4, {2, 2}, {8, 4}, {4, 8}};
  EXPECT_TRUE(device->copy_box(0, {y, 0, nullptr}, {x, 0, nullptr}, box).ok());
  EXPECT_EQ(device->copy_box(0, {y, 52, nullptr}, {x, 0, nullptr}, box).message(),
            "B17: 16 bytes at 52 of 64");
  box = {4, {2, 0}, {8, 400}, {400, 8}};
  EXPECT_TRUE(device->copy_box(0, {y, 64, nullptr}, {x, 16, nullptr}, box).ok());
  EXPECT_TRUE(finish(*device).ok());
}

// An error of work belongs to the next event, and to no other (B6, B23).
TEST_F(InterpTest, AnErrorIsTheNextEvents) {
  ASSERT_TRUE(launch({{x, 0, nullptr}, {x, 0, nullptr}}).ok());  // K4: detected when it runs.
  const EventHandle first = device->record(0).value();
  const EventHandle second = device->record(0).value();
  EXPECT_FALSE(device->await(first, -1));
  EXPECT_FALSE(device->await(first, 0));  // Still pending.
  EXPECT_TRUE(device->await(second, -1).value());
  ASSERT_TRUE(device->wait(0, first).ok());  // Its error does not cross (B24).
  EXPECT_TRUE(device->await(device->record(0).value(), -1).value());
}

TEST(Interp, HasAsManyQueuesAsItIsToldTo) {
  const auto queues = [](const char* said, uint32_t configured = 0) {
    const char* const before = std::getenv("TENON_INTERP_QUEUES");
    const std::string kept = before == nullptr ? "" : before;
    setenv("TENON_INTERP_QUEUES", said, 1);
    InterpreterConfig config;
    config.queues = configured;
    const auto devices = make_interpreter_backend(config)->devices();
    unsetenv("TENON_INTERP_QUEUES");
    if (before != nullptr) setenv("TENON_INTERP_QUEUES", kept.c_str(), 1);
    return devices ? std::to_string(devices->front().target.queues) : devices.error().message();
  };
  EXPECT_EQ(queues("3"), "3");
  EXPECT_EQ(queues("3", 2), "2");
  EXPECT_EQ(queues(""), "1") << "as if it were not set";
  for (const char* wrong : {"0", "17", "two", "2 "}) {
    EXPECT_EQ(queues(wrong),
              fmt::format("TENON_INTERP_QUEUES is '{}', expected a number of 1 to 16", wrong));
  }
}

// One queue waits for the other, and both end (B11).
TEST(Interp, ClosingEndsQueuesThatWait) {
  InterpreterConfig config;
  config.queues = 2;
  for (int i = 0; i < 50; ++i) {
    const auto device = make_interpreter_backend(config)->open(0).value();
    constexpr int64_t kBytes = 1 << 20;
    const MemoryHandle memory = device->allocate(0, 2 * kBytes).value();
    const std::array<std::byte, 1> zero = {};
    uint32_t queue = 0;
    for (int n = 0; n < 10; ++n, queue = 1 - queue) {
      // Each a part of its own: a queue that waits no more does not come behind the other.
      ASSERT_TRUE(device->fill(queue, {memory, queue * kBytes, nullptr}, kBytes, zero).ok());
      ASSERT_TRUE(device->wait(1 - queue, device->record(queue).value()).ok());
    }
  }
}

TEST_F(InterpTest, ClosingEndsWorkThatIsLeft) {
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(launch({{x, 0, nullptr}, {y, 0, nullptr}}).ok());
  device = nullptr;
}

TEST(Target, WhatNoDeviceCanBe) {
  TargetInfo target = make_interpreter_backend()->devices().value()[0].target;
  EXPECT_EQ(check(target).to_string(), "OK");
  const auto error = [&](const auto& change) {
    TargetInfo other = target;
    change(other);
    return check(other).message();
  };
  EXPECT_EQ(error([](TargetInfo& t) { t.name = ""; }), "the target '' is invalid: it has no name");
  EXPECT_EQ(error([](TargetInfo& t) { t.compiler_id = ""; }),
            "the target 'interp' is invalid: it has no compiler_id");
  EXPECT_EQ(error([](TargetInfo& t) { t.spaces.clear(); }),
            "the target 'interp' is invalid: it has no memory space");
  EXPECT_EQ(error([](TargetInfo& t) { t.spaces[0].alignment = 48; }),
            "the target 'interp' is invalid: an alignment of 48 is not a power of two");
  EXPECT_EQ(error([](TargetInfo& t) { t.spaces[0].reachable = false; }),
            "the target 'interp' is invalid: kernels do not reach spaces[0]");
  EXPECT_EQ(error([](TargetInfo& t) { t.queues = 0; }),
            "the target 'interp' is invalid: it has no queue");
  EXPECT_EQ(error([](TargetInfo& t) { t.most_lanes = -1; }),
            "the target 'interp' is invalid: -1 is negative");
  EXPECT_EQ(error([](TargetInfo& t) { t.math = {{"add", ElementType::kF32, 1}}; }),
            "the target 'interp' is invalid: there is no math function 'add'");
}

}  // namespace
}  // namespace tenon::backend
