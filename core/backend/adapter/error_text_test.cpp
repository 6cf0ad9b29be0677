// Errors of a plug-in's device say what it was asked to do: function, device, queue, kernel and op.
#include <gtest/gtest.h>

#include <array>

#include "core/backend/testing/table_in_c.h"

namespace tenon::backend {
namespace {

class ErrorTexts : public TableInC {
 protected:
  std::unique_ptr<Device> open() { return import_backend(&table_).value()->open(2).value(); }
  static Status copy(Device& device) {
    static std::array<std::byte, 4> host = {};
    return device.copy(1, {7, 0, nullptr}, MemoryAddress::of_host(host.data()), 4);
  }
  static Status await(Device& device) { return device.await(device.record(0).value(), -1).error(); }
};

TEST_F(ErrorTexts, NameTheFunctionOfCodesWithoutText) {
  const auto device = open();
  EXPECT_EQ(copy(*device),
            Status(ErrorCode::kInternal,
                   "copy gives code 13 without a text (B4) [chip:2: copy, queue 1]"));
  EXPECT_EQ(device->allocate(0, 8).error().message(),
            "allocate gives code 13 without a text (B4) [chip:2: allocate]");
  EXPECT_EQ(await(*device).message(),
            "await gives code 13 without a text (B4) [chip:2: await, queue 0]");
  table_.open = [](size_t, TenonDevice*, const TenonSink*) { return TENON_INTERNAL; };
  EXPECT_EQ(import_backend(&table_).value()->open(0).error().message(),
            "open gives code 13 without a text (B4)");
}

TEST_F(ErrorTexts, NameTheKernelAndTheOp) {
  table_.launch = [](const TenonLaunchArgs* args) {
    write(args->error, "too many lanes");
    return TENON_INTERNAL;
  };
  const auto device = open();
  KernelLaunch work;
  work.module = device->load("", kernels_).value();
  work.label = "stablehlo.add at p.mlir:3:8";
  EXPECT_EQ(device->launch(0, work).message(), "too many lanes [chip:2: launch of @k, queue 0]");
  table_.launch = [](const TenonLaunchArgs*) { return TENON_OK; };
  ASSERT_TRUE(device->launch(0, work).ok());
  EXPECT_EQ(
      await(*device).message(),
      "await gives code 13 without a text (B4) [chip:2: await of 2 pieces of work, the last a "
      "launch of @k, stablehlo.add at p.mlir:3:8, queue 0]");
  ASSERT_TRUE(device->launch(0, work).ok());
  EXPECT_EQ(await(*device).message(),
            "await gives code 13 without a text (B4) [chip:2: await of a launch of @k, "
            "stablehlo.add at p.mlir:3:8, queue 0]");
}

TEST_F(ErrorTexts, OfAnEventStayTheSameAfterUnload) {
  table_.launch = [](const TenonLaunchArgs*) { return TENON_OK; };
  const auto device = open();
  KernelLaunch work;
  work.module = device->load("", kernels_).value();
  ASSERT_TRUE(device->launch(0, work).ok());
  const EventHandle event = device->record(0).value();
  const std::string before = device->await(event, -1).error().message();
  EXPECT_EQ(before,
            "await gives code 13 without a text (B4) [chip:2: await of a launch of @k, queue 0]");
  device->unload(work.module);
  EXPECT_EQ(device->await(event, -1).error().message(), before);
}

}  // namespace
}  // namespace tenon::backend
