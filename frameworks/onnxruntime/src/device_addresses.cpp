#include "frameworks/onnxruntime/src/device_addresses.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "frameworks/onnxruntime/src/ort_runtime.h"

namespace tenon::ort {
namespace {

constexpr size_t kPage = 4096;

size_t reserved_bytes(size_t size) {
  return (std::max<size_t>(size, 1) + kPage - 1) / kPage * kPage;
}

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

void copy_to_host(const DeviceArray& array, void* data) {
  if (array.bytes() == 0) return;
  OwnedEvent copied = array.device->get(array.buffer.get(), data, array.bytes());
  array.device->plugin().await(copied.release());
}

// The same bytes as another array, by the device; null, if it has no such copy.
DeviceArrayPtr cast(const DeviceArray& array, ElementType type, const Dims& dims) {
  try {
    return make_device_array(array.device, type, dims,
                             array.device->bitcast(array.buffer.get(), type, dims));
  } catch (const client::PluginError&) {
    return nullptr;
  }
}

}  // namespace

DeviceArrayPtr make_device_array(std::shared_ptr<const ProviderDevice> device, ElementType type,
                                 Dims dims, OwnedBuffer buffer) {
  auto made = std::make_shared<DeviceArray>();
  made->device = std::move(device);
  made->type = type;
  made->dims = std::move(dims);
  made->buffer = std::move(buffer);
  return made;
}

size_t tensor_bytes(ElementType type, const Dims& dims) {
  const auto elements = static_cast<size_t>(element_count(dims));
  if (type == ElementType::kS4 || type == ElementType::kU4) return (elements + 1) / 2;
  return elements * storage_bytes(type);
}

DeviceAddresses::~DeviceAddresses() {
  for (const auto& [begin, allocation] : allocations_) {
    munmap(reinterpret_cast<void*>(begin), reserved_bytes(allocation.size));
  }
}

void* DeviceAddresses::allocate(size_t size) {
  void* const address = mmap(nullptr, reserved_bytes(size), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  allocations_[number_of(address)].size = size;
  return address;
}

void DeviceAddresses::free(void* address) {
  Allocation ended;  // Its arrays end without the lock.
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(number_of(address));
    if (found == allocations_.end()) return;
    ended = std::move(found->second);
    allocations_.erase(found);
  }
  munmap(address, reserved_bytes(ended.size));
}

const DeviceAddresses::Allocation* DeviceAddresses::around(uintptr_t begin, size_t size) const {
  auto found = allocations_.upper_bound(begin);
  if (found == allocations_.begin()) return nullptr;
  --found;
  // An empty allocation has its address alone.
  const uintptr_t end = found->first + found->second.size;
  const bool is_within = begin <= end && size <= end - begin;
  return is_within && (begin < end || begin == found->first) ? &found->second : nullptr;
}

bool DeviceAddresses::contains(const void* address) const {
  const std::lock_guard lock(mutex_);
  return around(number_of(address), 0) != nullptr;
}

void DeviceAddresses::set_device(const std::shared_ptr<const ProviderDevice>& device) {
  const std::lock_guard lock(mutex_);
  device_ = device;
}

std::shared_ptr<const ProviderDevice> DeviceAddresses::device() {
  {
    const std::lock_guard lock(mutex_);
    if (auto device = device_.lock()) return device;
  }
  auto device = open_();
  set_device(device);
  return device;
}

std::vector<DeviceAddresses::ArrayPlace> DeviceAddresses::places_in(uintptr_t begin,
                                                                    size_t size) const {
  const std::lock_guard lock(mutex_);
  const Allocation* const allocation = around(begin, size);
  if (allocation == nullptr) {
    throw OrtFailure{invalid_argument("{} bytes do not lie in the device's memory", size)};
  }
  std::vector<ArrayPlace> places;
  std::ranges::copy_if(allocation->places, std::back_inserter(places), [&](const ArrayPlace& each) {
    return each.begin < begin + size && begin < each.end();
  });
  return places;
}

DeviceArrayPtr DeviceAddresses::whole(uintptr_t begin, size_t size) const {
  const std::vector<ArrayPlace> places = places_in(begin, size);
  if (places.empty() || places.back().begin != begin || places.back().end() != begin + size) {
    return nullptr;
  }
  return places.back().array;
}

DeviceArrayPtr DeviceAddresses::array_at(const void* address, ElementType type, const Dims& dims,
                                         const std::shared_ptr<const ProviderDevice>& device) {
  const size_t size = tensor_bytes(type, dims);
  const DeviceArrayPtr found = whole(number_of(address), size);
  DeviceArrayPtr made;
  if (found != nullptr && found->device == device) {
    if (found->type == type && found->dims == dims) return found;
    made = cast(*found, type, dims);
  }
  if (made == nullptr) {
    std::vector<std::byte> bytes(size);
    read(address, bytes.data(), size);
    made = make_device_array(device, type, dims, device->put({bytes.data(), type, dims}, nullptr));
  }
  put(address, made);
  return made;
}

void DeviceAddresses::put(const void* address, DeviceArrayPtr array) {
  const uintptr_t begin = number_of(address);
  const ArrayPlace made = {begin, std::move(array)};
  std::vector<ArrayPlace> ended;  // They end without the lock.
  const std::lock_guard lock(mutex_);
  auto* const allocation = const_cast<Allocation*>(around(begin, made.array->bytes()));
  if (allocation == nullptr) {
    throw OrtFailure{invalid_argument("an array does not lie in the device's memory")};
  }
  const auto hidden = std::stable_partition(
      allocation->places.begin(), allocation->places.end(),
      [&](const ArrayPlace& each) { return each.begin < begin || made.end() < each.end(); });
  std::move(hidden, allocation->places.end(), std::back_inserter(ended));
  allocation->places.erase(hidden, allocation->places.end());
  allocation->places.push_back(made);
}

void DeviceAddresses::write(const void* address, ElementType type, const Dims& dims,
                            const void* data) {
  const std::shared_ptr<const ProviderDevice> device = this->device();
  const size_t size = tensor_bytes(type, dims);
  ElementType kept_type = type;
  Dims kept_dims = dims;
  if (type == ElementType::kS4 || type == ElementType::kU4 || type == ElementType::kU8) {
    // ONNX Runtime's Python writes bytes: they are what lay there before, if anything did.
    const DeviceArrayPtr before = whole(number_of(address), size);
    const bool is_typed = before != nullptr && !is_pred(before->type);
    kept_type = is_typed ? before->type : ElementType::kU8;
    kept_dims = is_typed ? before->dims : Dims{static_cast<int64_t>(size)};
  }
  put(address, make_device_array(device, kept_type, kept_dims,
                                 device->put({data, kept_type, kept_dims}, nullptr)));
}

void DeviceAddresses::read(const void* address, void* data, size_t size) const {
  const uintptr_t begin = number_of(address);
  if (const DeviceArrayPtr found = whole(begin, size)) return copy_to_host(*found, data);
  std::memset(data, 0, size);
  for (const ArrayPlace& each : places_in(begin, size)) {
    std::vector<std::byte> bytes(each.array->bytes());
    copy_to_host(*each.array, bytes.data());
    const uintptr_t from = std::max(begin, each.begin);
    const uintptr_t to = std::min(begin + size, each.end());
    std::memcpy(static_cast<std::byte*>(data) + (from - begin), bytes.data() + (from - each.begin),
                to - from);
  }
}

void DeviceAddresses::copy(const void* from, const void* to, ElementType type, const Dims& dims) {
  const size_t size = tensor_bytes(type, dims);
  if (const DeviceArrayPtr found = whole(number_of(from), size)) return put(to, found);
  std::vector<std::byte> bytes(size);
  read(from, bytes.data(), size);
  write(to, type, dims, bytes.data());
}

}  // namespace tenon::ort
