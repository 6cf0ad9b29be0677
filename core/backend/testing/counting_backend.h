// A backend that counts what is asked of its devices.
#pragma once

#include "core/backend/layers/forward.h"

namespace tenon::backend {

struct CallCounts {
  int fills = 0;
  int copies = 0;  ///< From the host.
};

/// For tests of one queue.
class CountingBackend final : public ForwardingBackend {
 public:
  /// `fills`: whether the devices offer `fill`, if those of `inner` do.
  CountingBackend(std::shared_ptr<Backend> inner, CallCounts& counts, bool fills = true)
      : ForwardingBackend(std::move(inner)), counts_(counts), fills_(fills) {}

  Result<std::unique_ptr<Device>> open(size_t index) override {
    TENON_ASSIGN(auto device, ForwardingBackend::open(index));
    return std::make_unique<CountingDevice>(std::move(device), counts_, fills_);
  }

 private:
  class CountingDevice final : public ForwardingDevice {
   public:
    CountingDevice(std::unique_ptr<Device> inner, CallCounts& counts, bool fills)
        : ForwardingDevice(std::move(inner)), counts_(counts), fills_(fills) {}
    Status fill(uint32_t queue, const MemoryAddress& to, int64_t bytes,
                std::span<const std::byte> pattern) override {
      Status status = fills_ ? ForwardingDevice::fill(queue, to, bytes, pattern)
                             : Device::fill(queue, to, bytes, pattern);
      if (status.ok()) ++counts_.fills;
      return status;
    }
    Status copy(uint32_t queue, const MemoryAddress& to, const MemoryAddress& from,
                int64_t bytes) override {
      if (from.on_host()) ++counts_.copies;
      return ForwardingDevice::copy(queue, to, from, bytes);
    }

   private:
    CallCounts& counts_;
    const bool fills_;
  };

  CallCounts& counts_;
  const bool fills_;
};

}  // namespace tenon::backend
