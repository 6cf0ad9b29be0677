// Devices whose work is done on the caller's thread: their events have happened when they are
// recorded.
#include "core/backend/in_process/host_device.h"

#include <gtest/gtest.h>

namespace tenon::backend {
namespace {

class DeviceOfTheCaller final : public HostDevice {
 public:
  DeviceOfTheCaller() : HostDevice("caller", 0, HostQueue::Thread::kCallers) {}
  ~DeviceOfTheCaller() override { end_work(); }

  Result<ModuleHandle> load(std::string_view, Kernels) override { return unimplemented("load"); }
  void unload(ModuleHandle) override {}
  Status launch(uint32_t, const KernelLaunch&) override { return unimplemented("launch"); }

  void work(const Status& outcome) {
    push(0, [&] {
      ++done;
      return outcome;
    });
  }
  int done = 0;
};

TEST(HostDevice, EventsOfWorkThatIsDoneHaveHappened) {
  DeviceOfTheCaller device;
  device.work({});
  EXPECT_EQ(device.done, 1);
  const auto first = device.record(0);
  const auto second = device.record(0);
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  for (const EventHandle event : {*first, *second}) {
    EXPECT_TRUE(device.wait(0, event).ok());
    const auto done = device.await(event, 0);
    EXPECT_TRUE(done && *done);
  }
  EXPECT_LT(device.event_times(*first).value().end, device.event_times(*second).value().end + 1e-3);
  device.release(*first);
  const auto done = device.await(*second, -1);
  EXPECT_TRUE(done && *done);
  device.release(*second);
}

TEST(HostDevice, ErrorsAreThoseOfTheNextEvent) {
  DeviceOfTheCaller device;
  device.work(internal_error("it failed"));
  device.work({});
  const auto failed = device.record(0);
  device.work({});
  const auto after = device.record(0);
  ASSERT_TRUE(failed && after);
  EXPECT_EQ(device.await(*failed, -1).error().message(), "it failed");
  EXPECT_TRUE(device.await(*after, 0).value_or(false));
  EXPECT_GT(device.event_times(*failed).value().end, 0);
  device.release(*failed);
  EXPECT_FALSE(device.await(*failed, 0));  // B10
}

}  // namespace
}  // namespace tenon::backend
