// Layers: planted violations are detected and the error names the rule; faults happen as planned.
#include "core/backend/layers/layers.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/forward.h"
#include "core/backend/testing/backend_test_util.h"

namespace tenon::backend {
namespace {

// The rules that a device breaks, as set by a test.
struct Breaks {
  bool zero_handles = false;
  bool same_handles = false;
  bool fickle_events = false;
  bool impatient = false;
  bool writes_behind = false;
  bool other_devices = false;
  bool declines_and_gives = false;
  bool declines_nobody = false;
  bool idle_errors = false;
  bool comes_back = false;
  bool other_bytes = false;
  std::function<void()> meanwhile;  // Called from within a copy.
};

class BreakingDevice final : public ForwardingDevice {
 public:
  BreakingDevice(std::unique_ptr<Device> inner, const Breaks& breaks)
      : ForwardingDevice(std::move(inner)), breaks_(breaks) {}

  Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) override {
    const auto memory = ForwardingDevice::allocate(space, bytes);
    if (breaks_.zero_handles) return 0;
    return breaks_.same_handles ? Result<MemoryHandle>(1) : memory;
  }
  Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
              int64_t bytes) override {
    if (breaks_.meanwhile) breaks_.meanwhile();
    return ForwardingDevice::copy(queue, destination, source, bytes);
  }
  Result<EventHandle> record(uint32_t queue) override {
    if (breaks_.comes_back && ++records_ == 1) {
      return make_error(ErrorCode::kUnavailable, "the device is gone");
    }
    return ForwardingDevice::record(queue);
  }
  Status launch(uint32_t queue, const KernelLaunch& launch) override {
    Status status = ForwardingDevice::launch(queue, launch);
    if (breaks_.writes_behind) {
      MemoryAddress behind = launch.buffers[1];
      behind.offset += 16;
      static const std::array<std::byte, 4> wrong = {};
      status = ForwardingDevice::copy(queue, behind, MemoryAddress::of_host(wrong.data()), 4);
    }
    return status;
  }
  Result<bool> await(EventHandle event, int64_t timeout) override {
    if (breaks_.impatient) return false;
    if (breaks_.idle_errors) return make_error(ErrorCode::kInternal, "what failed before");
    if (breaks_.fickle_events && ++awaits_ > 1) {
      return make_error(ErrorCode::kInternal, "now it failed");
    }
    return ForwardingDevice::await(event, timeout);
  }

 private:
  const Breaks& breaks_;
  int awaits_ = 0;
  int records_ = 0;
};

class BreakingBackend final : public ForwardingBackend {
 public:
  explicit BreakingBackend(const Breaks& breaks)
      : ForwardingBackend(make_interpreter_backend()), breaks_(breaks) {}
  Result<std::vector<DeviceInfo>> devices() override {
    auto devices = ForwardingBackend::devices();
    if (breaks_.other_devices) devices->front().name = "another";
    return devices;
  }
  Result<std::unique_ptr<Device>> open(size_t index) override {
    return std::make_unique<BreakingDevice>(ForwardingBackend::open(index).value(), breaks_);
  }
  Result<Compiled> compile(const TargetInfo& target, Kernels kernels) override {
    auto compiled = ForwardingBackend::compile(target, kernels);
    if (breaks_.declines_and_gives) compiled->declined.push_back({0, Reason::kOther, ""});
    if (breaks_.other_bytes) compiled->binary += std::to_string(++compiled_);
    if (breaks_.declines_nobody) *compiled = {"", {{7, Reason::kOther, ""}}};
    return compiled;
  }

 private:
  const Breaks& breaks_;
  int compiled_ = 0;
};

class ValidateTest : public OnDevice {
 protected:
  ValidateTest() { open(make_validate_layer(std::make_shared<BreakingBackend>(breaks)), 64, 128); }
  ~ValidateTest() override { device = nullptr; }  // Before the members that it refers to.

  Status done() { return finish(*device); }
  // The error of an earlier call, as the next call reports it.
  std::string later() { return device->record(0).error().message(); }

  Breaks breaks;
};

TEST_F(ValidateTest, WhatIsRightPasses) {
  const std::array<float, 4> from = {1, 2, 3, 4};
  std::array<float, 4> to = {};
  const auto* bytes = reinterpret_cast<const std::byte*>(from.data());
  ASSERT_TRUE(device->copy(0, {x, 0, nullptr}, MemoryAddress::of_host(bytes), 16).ok());
  ASSERT_EQ(launch({{x, 0, nullptr}, {y, 64, nullptr}}).message(), "");
  ASSERT_TRUE(device
                  ->copy(0, MemoryAddress::of_host(reinterpret_cast<std::byte*>(to.data())),
                         {y, 64, nullptr}, 16)
                  .ok());
  EXPECT_EQ(done().message(), "");
  EXPECT_EQ(to, (std::array<float, 4>{2, 3, 4, 5}));
  EXPECT_EQ(reinterpret_cast<float*>(device->map(x).value())[1], 2.0F);
  device->free(x);
  device->free(y);
  device->unload(module);
  EXPECT_EQ(done().message(), "");
}

TEST_F(ValidateTest, TheHostsBreaks) {
  std::array<std::byte, 64> host = {};
  const MemoryAddress on_host = MemoryAddress::of_host(host.data());
  EXPECT_EQ(launch({{x, 0, nullptr}}).message(),
            "validate: B21: @k takes 2 buffers and 0 scalars, the launch has 1 and 0");
  EXPECT_EQ(launch({{x, 0, nullptr}, on_host}).message(),
            "validate: B21: @k: buffer 1 is host memory");
  EXPECT_EQ(launch({{x, 0, nullptr}, {x, 0, nullptr}}).message(),
            "validate: B21: @k: buffers 1 and 0 overlap");
  EXPECT_EQ(launch({{x, 64, nullptr}, {y, 0, nullptr}}).message(),
            "validate: B17: a buffer: 16 bytes at 64 of 64");
  EXPECT_EQ(launch({{x, 4, nullptr}, {y, 0, nullptr}}).message(),
            "validate: B17: @k: buffer 0 lies at 4, which 64 does not divide");
  EXPECT_EQ(launch({{99, 0, nullptr}, {y, 0, nullptr}}).message(),
            "validate: B10: a buffer: no memory 99");
  EXPECT_EQ(launch({{x, 0, nullptr}, {y, 0, nullptr}}, 1).message(),
            "validate: B10: there is no queue 1");
  KernelLaunch other;
  other.module = module;
  other.kernel = 1;
  EXPECT_EQ(device->launch(0, other).message(), "validate: B14: a launch of kernel 1 of 1");
  other.module = 55;
  EXPECT_EQ(device->launch(0, other).message(), "validate: B10: a launch of no module 55");
  EXPECT_EQ(device->copy(0, on_host, on_host, 4).message(),
            "validate: B19: a copy from host to host");
  EXPECT_EQ(device->copy(0, {x, 0, nullptr}, on_host, 0).message(),
            "validate: B19: a copy of 0 bytes");
  EXPECT_EQ(device->copy(0, {x, 0, nullptr}, {x, 8, nullptr}, 16).message(),
            "validate: B19: the ends of a copy of 16 bytes overlap");
  EXPECT_EQ(
      device->copy(0, {x, 0, nullptr}, MemoryAddress::of_host(static_cast<std::byte*>(nullptr)), 4)
          .message(),
      "validate: B19: a copy's source is null");
  EXPECT_EQ(device->allocate(0, 0).error().message(), "validate: B16: an allocation of 0 bytes");
  EXPECT_EQ(device->allocate(3, 8).error().message(), "validate: B16: there is no space 3");
  EXPECT_EQ(device->wait(0, 9).message(), "validate: B10: a wait for no event 9");
  EXPECT_EQ(device->await(9, 0).error().message(), "validate: B10: await of no event 9");
  EXPECT_EQ(backend->open(8).error().message(), "validate: B9: open of device 8 of 1");
  device->free(77);
  EXPECT_EQ(later(), "validate: B10: free of no memory 77");
  device->unload(77);
  EXPECT_EQ(later(), "validate: B10: unload of no module 77");
  device->release(77);
  EXPECT_EQ(later(), "validate: B10: release of no event 77");
  ASSERT_TRUE(launch({{x, 0, nullptr}, {y, 0, nullptr}}).ok());
  device->free(x);
  EXPECT_EQ(later(), "validate: B18: memory " + std::to_string(x) + " is freed while work uses it");
  ASSERT_TRUE(launch({{y, 0, nullptr}, {y, 64, nullptr}}).ok());
  device->unload(module);
  EXPECT_EQ(later(),
            "validate: B18: module " + std::to_string(module) + " is unloaded while work uses it");
}

TEST_F(ValidateTest, TheBackendsBreaks) {
  const auto error = [&](bool Breaks::* rule, const auto& call) {
    breaks.*rule = true;
    std::string text = call();
    breaks.*rule = false;
    return text;
  };
  const auto allocate = [&] { return device->allocate(0, 8).error().message(); };
  EXPECT_EQ(error(&Breaks::zero_handles, allocate), "validate: B10: allocate gave the handle 0");
  EXPECT_EQ(error(&Breaks::same_handles, allocate), "validate: B10: allocate gave handle 1 twice");
  EXPECT_EQ(error(&Breaks::impatient, [&] { return done().message(); }), "the event is pending");
  EXPECT_EQ(later(), "validate: B25: await without limit answers that the event is pending");
  EXPECT_EQ(error(&Breaks::fickle_events,
                  [&] {
                    EXPECT_TRUE(launch({{x, 0, nullptr}, {y, 0, nullptr}}).ok());
                    const EventHandle event = device->record(0).value();
                    static_cast<void>(device->await(event, -1));
                    static_cast<void>(device->await(event, -1));
                    return device->await(event, 0).error().message();
                  }),
            "validate: B25: an event that was 'done' is 'now it failed' now");
  EXPECT_EQ(error(&Breaks::writes_behind,
                  [&] {
                    EXPECT_TRUE(launch({{x, 0, nullptr}, {y, 64, nullptr}}).ok());
                    const MemoryHandle z = device->allocate(0, 16).value();
                    EXPECT_TRUE(launch({{x, 0, nullptr}, {z, 0, nullptr}}).ok());
                    return done().message().substr(0, 76);
                  }),
            "validate: B21: @k: 4 bytes were written out of bounds, the first at 16 of bu");
  EXPECT_EQ(error(&Breaks::other_devices, [&] { return backend->devices().error().message(); }),
            "validate: B9: the devices are others than before");
  const auto compile = [&] {
    const kernel::Kernel* kernels[] = {&kernel};
    return backend->compile(target, kernels).error().message();
  };
  EXPECT_EQ(error(&Breaks::declines_and_gives, compile),
            "validate: B13: compile gave bytes and declined kernels");
  EXPECT_EQ(error(&Breaks::declines_nobody, compile),
            "validate: B13: compile declined kernel 7 of 1");
}

TEST_F(ValidateTest, EventsOfNoWorkDoNotFail) {
  breaks.idle_errors = true;
  EXPECT_EQ(done().message(), "validate: B23: an event of no work failed: what failed before");
  ASSERT_TRUE(launch({{x, 0, nullptr}, {y, 0, nullptr}}).ok());
  EXPECT_EQ(done().message(), "what failed before");
}

TEST_F(ValidateTest, ALostDeviceStaysLost) {
  breaks.comes_back = true;
  EXPECT_EQ(done().message(), "the device is gone");
  EXPECT_EQ(done().message(), "validate: B12: record answers 'OK' on a lost device");
  EXPECT_EQ(launch({{x, 0, nullptr}, {y, 0, nullptr}}).message(),
            "validate: B12: launch answers 'OK' on a lost device");
}

TEST_F(ValidateTest, DevicesAreOpenOnce) {
  EXPECT_EQ(backend->open(0).error().message(), "validate: B11: device 0 is open already");
  device = nullptr;
  EXPECT_TRUE(backend->open(0));
}

TEST_F(ValidateTest, QueuesAreUsedByOneAtATime) {
  std::array<std::byte, 4> host = {};
  std::string other;
  breaks.meanwhile = [&] {
    std::thread([&] { other = device->wait(0, 1).message(); }).join();
    breaks.meanwhile = nullptr;
  };
  EXPECT_TRUE(device->copy(0, {x, 0, nullptr}, MemoryAddress::of_host(host.data()), 4).ok());
  EXPECT_EQ(other, "validate: B7: two calls for queue 0 at once");
}

TEST(Validate, TheSameKernelsGiveTheSameBytes) {
  Breaks breaks;
  breaks.other_bytes = true;
  const auto backend = make_validate_layer(std::make_shared<BreakingBackend>(breaks));
  const kernel::Kernel kernel = add_one();
  const kernel::Kernel* kernels[] = {&kernel};
  const TargetInfo target = backend->devices().value()[0].target;
  EXPECT_EQ(backend->compile(target, kernels).error().message(),
            "validate: B13: the same kernels compile to other bytes");
}

// Unwritten memory is poisoned, and the layer's own work does not swallow an error of the host's
// work.
TEST_F(ValidateTest, PoisonAndErrorsOfWork) {
  std::array<std::byte, 4> host = {};
  ASSERT_TRUE(device->copy(0, MemoryAddress::of_host(host.data()), {x, 8, nullptr}, 4).ok());
  ASSERT_TRUE(done().ok());
  EXPECT_EQ(host[2], std::byte{0xA5});
}

// --- Faults

TEST(Faults, PlansParse) {
  const auto plan = FaultPlan::parse("launch@3, copy%20 lost@9 seed=7");
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->nth[static_cast<size_t>(FaultKind::kLaunch)], 3);
  EXPECT_EQ(plan->one_in[static_cast<size_t>(FaultKind::kCopy)], 20);
  EXPECT_EQ(plan->nth[static_cast<size_t>(FaultKind::kLost)], 9);
  EXPECT_EQ(plan->seed, 7u);
  for (const char* wrong :
       {"launch", "launch@", "launch@0", "launch@x", "lunch@3", "seed@3", "@3"}) {
    const auto none = FaultPlan::parse(wrong);
    ASSERT_FALSE(none) << wrong;
    EXPECT_EQ(none.error().message(),
              "'" + std::string(wrong) +
                  "' is not a fault: KIND@N (the N-th), KIND%N (one in N) or seed=N, of the kinds "
                  "open, compile, plan, load, allocate, import, copy, launch, record, wait, event, "
                  "lost, delay");
  }
}

TEST(Faults, TheNthCallFails) {
  const auto layer =
      make_faults_layer(make_interpreter_backend(), FaultPlan::parse("allocate@2 event@2").value());
  const auto device = layer.backend->open(0).value();
  EXPECT_TRUE(device->allocate(0, 8));
  const auto second = device->allocate(0, 8);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), Status(ErrorCode::kResourceExhausted, "a planned fault: allocate"));
  EXPECT_TRUE(device->allocate(0, 8));
  const MemoryHandle memory = device->allocate(0, 8).value();
  std::array<std::byte, 8> host = {};
  const auto work = [&] {
    EXPECT_TRUE(device->copy(0, {memory, 0, nullptr}, MemoryAddress::of_host(host.data()), 8).ok());
    const auto done = device->await(device->record(0).value(), -1);
    EXPECT_TRUE(device->await(device->record(0).value(), -1).value());  // An event without work.
    return done ? "done" : done.error().message();
  };
  EXPECT_EQ(work(), "done");
  EXPECT_EQ(work(), "a planned fault: event");
  EXPECT_EQ(work(), "done");
}

TEST(Faults, PlansOfCallsFailToo) {
  const auto layer =
      make_faults_layer(make_interpreter_backend(), FaultPlan::parse("plan@2").value());
  const Shape four(ElementType::kF32, {4});
  const program::LibraryCall sort = program::Sort{};
  const auto plan = [&] {
    return layer.backend->plan({}, {sort, {&four, 1}, {&four, 1}, {false}}).error().code();
  };
  EXPECT_EQ(plan(), ErrorCode::kUnimplemented);
  EXPECT_EQ(plan(), ErrorCode::kInternal);
  EXPECT_EQ(plan(), ErrorCode::kUnimplemented);
}

TEST(Faults, ALostDeviceStaysLost) {
  const auto layer =
      make_faults_layer(make_interpreter_backend(), FaultPlan::parse("lost@3").value());
  auto device = layer.backend->open(0).value();
  const auto memory = device->allocate(0, 8);
  ASSERT_TRUE(memory);
  const EventHandle event = device->record(0).value();
  EXPECT_EQ(device->allocate(0, 8).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(device->record(0).error().code(), ErrorCode::kUnavailable);
  static_cast<void>(device->await(event, -1));  // Does not wait forever.
  device->release(event);
  device->free(*memory);
  device = layer.backend->open(0).value();  // And it can be opened again.
  EXPECT_TRUE(device->allocate(0, 8));
}

TEST(Layers, ByName) {
  const auto inner = std::shared_ptr<Backend>(make_interpreter_backend());
  EXPECT_EQ(with_layers(inner, "").value(), inner);
  EXPECT_EQ(with_layers(inner, "validate,faults").value()->name(), "interp");
  EXPECT_EQ(with_layers(inner, "valid").error().message(),
            "there is no layer 'valid'; there are validate, faults, cache, record and trace");
}

}  // namespace
}  // namespace tenon::backend
