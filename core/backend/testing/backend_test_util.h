// core/backend/testing/: what tests of backends share.
//
// Helpers for tests of backends and layers: a kernel, a device on which it is loaded, and waiting.
#pragma once

#include <gtest/gtest.h>

#include "core/backend/backend.h"
#include "core/kernel/text/text.h"

namespace tenon::backend {

/// y = x + 1, of f32[4].
inline kernel::Kernel add_one(const std::string& name = "k") {
  return kernel::parse("kernel @" + name +
                           "(%x: in f32[4], %y: out f32[4]) index s32 grid(%i: 4) {\n"
                           "%a = load %x[%i] : f32\n%b = add %a, 1.0 : f32\n"
                           "store %b, %y[%i] : f32\n}",
                       "k")
      .value();
}

/// The outcome of an event after all work of the queue.
inline Status finish(Device& device, uint32_t queue = 0) {
  const auto event = device.record(queue);
  if (!event) return event.error();
  const auto outcome = device.await(*event, -1);
  device.release(*event);
  if (outcome && !*outcome) return internal_error("the event is pending");
  return outcome ? Status() : outcome.error();
}

/// A device with the kernel loaded and memory for its arrays.
class OnDevice : public ::testing::Test {
 protected:
  void open(std::shared_ptr<Backend> on, int64_t bytes_of_x, int64_t bytes_of_y) {
    backend = std::move(on);
    device = backend->open(0).value();
    target = backend->devices().value()[0].target;
    const kernel::Kernel* kernels[] = {&kernel};
    binary = backend->compile(target, kernels).value().binary;
    module = device->load(binary, kernels).value();
    x = device->allocate(0, bytes_of_x).value();
    y = device->allocate(0, bytes_of_y).value();
  }

  Status launch(std::vector<MemoryAddress> places, uint32_t queue = 0) {
    KernelLaunch work;
    work.module = module;
    work.buffers = places;
    return device->launch(queue, work);
  }

  std::shared_ptr<Backend> backend;
  std::unique_ptr<Device> device;
  TargetInfo target;
  const kernel::Kernel kernel = add_one();
  std::string binary;
  ModuleHandle module = 0;
  MemoryHandle x = 0;
  MemoryHandle y = 0;
};

}  // namespace tenon::backend
