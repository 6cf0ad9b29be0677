// Memory that the host does not see, for ONNX Runtime: addresses, and the arrays that lie there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "frameworks/onnxruntime/src/device.h"

namespace tenon::ort {

/// Bytes of a tensor of ONNX Runtime, which packs elements of four bits.
size_t tensor_bytes(ElementType type, const Dims& dims);

/// An array on a device. It does not change.
struct DeviceArray {
  std::shared_ptr<const ProviderDevice> device;
  ElementType type = ElementType::kU8;
  Dims dims;
  OwnedBuffer buffer;

  size_t bytes() const { return tensor_bytes(type, dims); }
};
using DeviceArrayPtr = std::shared_ptr<const DeviceArray>;
DeviceArrayPtr make_device_array(std::shared_ptr<const ProviderDevice> device, ElementType type,
                                 Dims dims, OwnedBuffer buffer);

/// The memory of the device of a registration.
///
/// ONNX Runtime asks for memory first and has results written there; PJRT makes a result with its
/// memory. So an allocation is a range of addresses alone, which nobody can read, and a result is
/// put at an address as it is, without a copy. ONNX Runtime divides allocations: an array may lie
/// anywhere in one.
///
/// Thread-safety: everything, from any thread.
class DeviceAddresses {
 public:
  /// `open` gives the device for `write` while no session has said which.
  explicit DeviceAddresses(std::function<std::shared_ptr<const ProviderDevice>()> open)
      : open_(std::move(open)) {}
  DeviceAddresses(const DeviceAddresses&) = delete;
  DeviceAddresses& operator=(const DeviceAddresses&) = delete;
  ~DeviceAddresses();

  /// Null, if the process has no addresses left.
  void* allocate(size_t size);
  void free(void* address);
  bool contains(const void* address) const;

  /// The device on which `write` puts arrays while it is open. A device may be open for one client
  /// of a process: sessions and arrays hold it, this memory does not.
  void set_device(const std::shared_ptr<const ProviderDevice>& device);

  /// The contents of an address as an array of the device, the type and the sizes. If they lie
  /// there otherwise, such as bytes without a type, or on another device, they are brought into
  /// that form and stay so. Throws PluginError and OrtFailure, as all that follow.
  DeviceArrayPtr array_at(const void* address, ElementType type, const Dims& dims,
                          const std::shared_ptr<const ProviderDevice>& device);
  void put(const void* address, DeviceArrayPtr array);

  /// Copies from the host, to the host, and within the memory. Bytes that nothing was written to
  /// are zero.
  void write(const void* address, ElementType type, const Dims& dims, const void* data);
  void read(const void* address, void* data, size_t size) const;
  void copy(const void* from, const void* to, ElementType type, const Dims& dims);

 private:
  /// An array, and the address of its first byte.
  struct ArrayPlace {
    uintptr_t begin = 0;
    DeviceArrayPtr array;

    uintptr_t end() const { return begin + array->bytes(); }
  };
  /// Later places hide what they cover of earlier ones.
  struct Allocation {
    size_t size = 0;
    std::vector<ArrayPlace> places;
  };

  /// The allocation around a range, or null. With the lock.
  const Allocation* around(uintptr_t begin, size_t size) const;
  /// The places in a range, or an error if it is not of this memory.
  std::vector<ArrayPlace> places_in(uintptr_t begin, size_t size) const;
  /// The array that is the whole of a range, or null.
  DeviceArrayPtr whole(uintptr_t begin, size_t size) const;

  std::shared_ptr<const ProviderDevice> device();

  std::function<std::shared_ptr<const ProviderDevice>()> open_;
  mutable std::mutex mutex_;  ///< Guards what follows.
  std::map<uintptr_t, Allocation> allocations_;
  std::weak_ptr<const ProviderDevice> device_;
};

}  // namespace tenon::ort
