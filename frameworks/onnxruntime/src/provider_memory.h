// The memory of a registration's device as ONNX Runtime sees it: an allocator and a data transfer.
#pragma once

#include <memory>

#include "frameworks/onnxruntime/src/device_addresses.h"
#include "frameworks/onnxruntime/src/graph_reader.h"

namespace tenon::ort {

/// Thread-safety: everything, from any thread.
class ProviderMemory {
 public:
  /// The memory of a device of the kind GPU without a maker, whose number is that of the memory in
  /// the process. Of other kinds ONNX Runtime's Python makes no arrays. `open` is as for
  /// DeviceAddresses.
  ProviderMemory(const OrtRuntime& runtime,
                 std::function<std::shared_ptr<const ProviderDevice>()> open);
  ProviderMemory(const ProviderMemory&) = delete;
  ProviderMemory& operator=(const ProviderMemory&) = delete;
  ~ProviderMemory();

  const OrtMemoryInfo* info() const { return info_; }
  const std::shared_ptr<DeviceAddresses>& memory() const { return memory_; }

  /// For ONNX Runtime, which may keep them longer than the registration.
  OrtAllocator* make_allocator() const;
  OrtDataTransferImpl* make_transfer() const;
  static void end_allocator(OrtAllocator* allocator);

 private:
  OrtRuntime runtime_;
  std::shared_ptr<DeviceAddresses> memory_;
  OrtMemoryInfo* info_ = nullptr;
};

}  // namespace tenon::ort
