// The state that `validate` keeps by queue, by memory space and by library call.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/backend/testing/backend_test_util.h"

namespace tenon::backend {
namespace {

constexpr int64_t kWide = 1024;  // The alignment of the second space.

// Interp as a device of two queues, whose work is done in one order, and of two spaces. It takes
// calls, and does nothing for them.
class TwofoldDevice final : public ForwardingDevice {
 public:
  TwofoldDevice(std::unique_ptr<Device> inner, const std::function<void()>& meanwhile)
      : ForwardingDevice(std::move(inner)), meanwhile_(meanwhile) {}

  Result<MemoryHandle> allocate(uint32_t, int64_t bytes) override {
    return ForwardingDevice::allocate(0, bytes);
  }
  Status copy(uint32_t, const MemoryAddress& to, const MemoryAddress& from,
              int64_t bytes) override {
    if (meanwhile_) meanwhile_();
    return ForwardingDevice::copy(0, to, from, bytes);
  }
  Status launch(uint32_t, const KernelLaunch& launch) override {
    return ForwardingDevice::launch(0, launch);
  }
  Result<EventHandle> record(uint32_t) override { return ForwardingDevice::record(0); }
  Status wait(uint32_t, EventHandle event) override { return ForwardingDevice::wait(0, event); }
  Status call(uint32_t, const LibraryCallLaunch&) override { return {}; }

 private:
  const std::function<void()>& meanwhile_;
};

class TwofoldBackend final : public ForwardingBackend {
 public:
  explicit TwofoldBackend(const std::function<void()>& meanwhile)
      : ForwardingBackend(make_interpreter_backend()), meanwhile_(meanwhile) {}
  Result<std::vector<DeviceInfo>> devices() override {
    auto devices = ForwardingBackend::devices();
    devices->front().target.queues = 2;
    devices->front().target.spaces.push_back({SpaceKind::kDevice, true, false, 0, kWide});
    return devices;
  }
  Result<std::unique_ptr<Device>> open(size_t index) override {
    return std::make_unique<TwofoldDevice>(ForwardingBackend::open(index).value(), meanwhile_);
  }
  Result<LibraryCallPlan> plan(const TargetInfo&, const LibraryCallSite& site) override {
    return LibraryCallPlan{site.operands[0].to_string(), 64, {0, 32}, 0};
  }

 private:
  const std::function<void()>& meanwhile_;
};

class TwofoldTest : public OnDevice {
 protected:
  TwofoldTest() { open(make_validate_layer(std::make_shared<TwofoldBackend>(meanwhile)), 64, 128); }
  ~TwofoldTest() override { device = nullptr; }  // Before what it looks at.

  Status work(uint32_t queue) { return launch({{x, 0, nullptr}, {y, 0, nullptr}}, queue); }
  // The error that the layer noted in calls without a result.
  std::string noted() {
    const auto event = device->record(0);
    return event ? "" : event.error().message();
  }

  std::function<void()> meanwhile;  // Called from within a copy.
};

TEST_F(TwofoldTest, AnEventSaysNothingOfAnotherQueuesWork) {
  ASSERT_EQ(work(0).message(), "");
  ASSERT_EQ(launch({{x, 0, nullptr}, {y, 64, nullptr}}, 1).message(), "");
  ASSERT_EQ(finish(*device, 1).message(), "");
  device->free(x);
  EXPECT_EQ(noted(), fmt::format("validate: B18: memory {} is freed while work uses it", x));
  device->unload(module);
  EXPECT_EQ(noted(),
            fmt::format("validate: B18: module {} is unloaded while work uses it", module));
}

TEST_F(TwofoldTest, UnlessItWaitedForThat) {
  ASSERT_EQ(work(0).message(), "");
  const EventHandle before = device->record(0).value();
  ASSERT_EQ(device->wait(1, before).message(), "");
  ASSERT_EQ(finish(*device, 1).message(), "");
  device->free(x);
  device->unload(module);
  EXPECT_EQ(noted(), "");
  device->release(before);
}

TEST_F(TwofoldTest, WorkOfTwoQueuesOnTheSameBytesIsOrdered) {
  std::array<std::byte, 64> host = {};
  const auto read = [&](MemoryHandle memory, int64_t offset, int64_t bytes) {
    return device->copy(1, MemoryAddress::of_host(host.data()), {memory, offset, nullptr}, bytes)
        .message();
  };
  ASSERT_EQ(work(0).message(), "");
  EXPECT_EQ(read(x, 0, 16), "");  // Both only read it.
  EXPECT_EQ(read(y, 16, 16), "");
  constexpr auto kUnordered =
      "validate: B20: a copy's source: queue 1 reads bytes 12 to 16 of memory 2, which queue 0 "
      "writes; no wait orders them";
  EXPECT_EQ(read(y, 12, 4), kUnordered);
  const EventHandle event = device->record(0).value();
  EXPECT_EQ(read(y, 12, 4), kUnordered);
  ASSERT_EQ(device->wait(1, event).message(), "");
  EXPECT_EQ(read(y, 12, 4), "");
  // Work that writes comes behind the readers.
  EXPECT_EQ(work(0).message(),
            "validate: B20: a buffer: queue 0 writes bytes 0 to 16 of memory 2, which queue 1 "
            "reads; no wait orders them");
  ASSERT_EQ(finish(*device, 1).message(), "");  // The host has waited.
  EXPECT_EQ(work(0).message(), "");
  device->release(event);
}

TEST_F(TwofoldTest, QueuesAreUsedAtTheSameTime) {
  std::array<std::byte, 4> host = {};
  std::string other = "nothing";
  const EventHandle event = device->record(1).value();
  meanwhile = [&] {
    std::thread([&] { other = device->wait(1, event).message(); }).join();
    meanwhile = nullptr;
  };
  EXPECT_TRUE(device->copy(0, {x, 0, nullptr}, MemoryAddress::of_host(host.data()), 4).ok());
  EXPECT_EQ(other, "");
  EXPECT_EQ(finish(*device).message(), "");  // It may read `host` until then.
}

TEST_F(TwofoldTest, EachSpaceHasItsAlignment) {
  const MemoryHandle z = device->allocate(1, 2 * kWide).value();
  EXPECT_EQ(launch({{x, 0, nullptr}, {z, kWide, nullptr}}).message(), "");
  EXPECT_EQ(launch({{x, 0, nullptr}, {z, 64, nullptr}}).message(),
            "validate: B17: @k: buffer 1 lies at 64, which 1024 does not divide");
  // Memory behind the canary is aligned in the inner device, too.
  EXPECT_EQ(finish(*device).message(), "");
}

TEST_F(TwofoldTest, CallsUseWhatWasPlanned) {
  const Shape four(ElementType::kF32, {4});
  const Shape shapes[] = {four, four};
  const program::LibraryCall sort = program::Sort{};
  const LibraryCallPlan plan =
      backend->plan(target, {sort, shapes, {shapes, 1}, {false, true}}).value();
  const MemoryHandle workspace = device->allocate(0, 64).value();
  const MemoryAddress operands[] = {{x, 0, nullptr}, {y, 0, nullptr}};
  MemoryAddress result = {x, 32, nullptr};
  const auto call = [&](const MemoryAddress& where) {
    LibraryCallLaunch launch;
    launch.plan = plan.plan;
    launch.operands = operands;
    launch.results = {&result, 1};
    launch.workspace = where;
    return device->call(0, launch).message();
  };
  EXPECT_EQ(call({workspace, 0, nullptr}), "");
  EXPECT_EQ(call({}), "validate: B17: a call without its workspace of 64 bytes");
  EXPECT_EQ(call({workspace, 32, nullptr}), "validate: B17: a workspace: 64 bytes at 32 of 64");
  EXPECT_EQ(call({99, 0, nullptr}), "validate: B10: a workspace: no memory 99");
  result.offset = 56;
  EXPECT_EQ(call({workspace, 0, nullptr}), "validate: B17: a result: 16 bytes at 56 of 64");
  device->free(workspace);
  EXPECT_EQ(noted(),
            fmt::format("validate: B18: memory {} is freed while work uses it", workspace));
}

}  // namespace
}  // namespace tenon::backend
