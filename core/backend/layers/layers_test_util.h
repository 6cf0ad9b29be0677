// What tests of layers share: a kernel, and waiting.
#pragma once

#include "core/backend/backend.h"
#include "core/kernel/text.h"

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

/// The outcome of an event of all that the queue was given.
inline Status finish(Device& device, uint32_t queue = 0) {
  const auto event = device.record(queue);
  if (!event) return event.error();
  const auto outcome = device.await(*event, -1);
  device.release(*event);
  return outcome ? Status() : outcome.error();
}

}  // namespace tenon::backend
