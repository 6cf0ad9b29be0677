#include "frameworks/onnxruntime/src/provider_memory.h"

#include <atomic>

namespace tenon::ort {
namespace {

struct MemoryAllocator : OrtAllocator {
  std::shared_ptr<DeviceAddresses> memory;
  const OrtMemoryInfo* info;

  MemoryAllocator(std::shared_ptr<DeviceAddresses> of, const OrtMemoryInfo* described)
      : memory(std::move(of)), info(described) {
    Alloc = [](OrtAllocator* self, size_t size) {
      return static_cast<MemoryAllocator*>(self)->memory->allocate(size);
    };
    Reserve = Alloc;
    Free = [](OrtAllocator* self, void* address) {
      static_cast<MemoryAllocator*>(self)->memory->free(address);
    };
    Info = [](const OrtAllocator* self) { return static_cast<const MemoryAllocator*>(self)->info; };
  }
};

struct MemoryTransfer : OrtDataTransferImpl {
  OrtRuntime runtime;
  std::shared_ptr<DeviceAddresses> memory;
  const OrtMemoryInfo* info;

  MemoryTransfer(const OrtRuntime& tables, std::shared_ptr<DeviceAddresses> of,
                 const OrtMemoryInfo* described)
      : runtime(tables), memory(std::move(of)), info(described) {
    Release = [](OrtDataTransferImpl* self) { delete static_cast<MemoryTransfer*>(self); };
    CanCopy = [](const OrtDataTransferImpl* self, const OrtMemoryDevice* from,
                 const OrtMemoryDevice* to) {
      const auto* const transfer = static_cast<const MemoryTransfer*>(self);
      const bool takes = transfer->is_own(from) || transfer->is_host(from);
      const bool gives = transfer->is_own(to) || transfer->is_host(to);
      return takes && gives && !(transfer->is_host(from) && transfer->is_host(to));
    };
    CopyTensors = [](OrtDataTransferImpl* self, const OrtValue** from, OrtValue** to,
                     OrtSyncStream**, size_t count) {
      auto* const transfer = static_cast<MemoryTransfer*>(self);
      return transfer->runtime.guarded([&] {
        for (size_t i = 0; i < count; ++i) transfer->copy(from[i], to[i]);
      });
    };
  }

  bool is_own(const OrtMemoryDevice* device) const {
    return runtime.get<MemoryDeviceAreEqual>(device, runtime.get<MemoryInfoGetMemoryDevice>(info));
  }
  bool is_host(const OrtMemoryDevice* device) const {
    return runtime.get<MemoryDeviceGetDeviceType>(device) == kOrtCpuMemory;
  }
  void copy(const OrtValue* from, const OrtValue* to) const {
    const GraphReader reader(runtime);
    const TensorView source = reader.tensor(from);
    const TensorView target = reader.tensor(to);
    const size_t size = tensor_bytes(source.type, source.dims);
    if (size != tensor_bytes(target.type, target.dims)) {
      throw OrtFailure{invalid_argument("a copy between tensors of different sizes")};
    }
    if (size == 0) return;
    if (!memory->contains(target.data)) {
      memory->read(source.data, const_cast<void*>(target.data), size);
    } else if (memory->contains(source.data)) {
      memory->copy(source.data, target.data, source.type, source.dims);
    } else {
      memory->write(target.data, source.type, source.dims, source.data);
    }
  }
};

}  // namespace

ProviderMemory::ProviderMemory(const OrtRuntime& runtime,
                               std::function<std::shared_ptr<const ProviderDevice>()> open)
    : runtime_(runtime), memory_(std::make_shared<DeviceAddresses>(std::move(open))) {
  static std::atomic<int32_t> count = 0;
  runtime_.call<CreateMemoryInfoV2>("Tenon", kOrtGpuMemory, uint32_t{0}, count++, kOrtDefaultMemory,
                                    size_t{0}, kOrtDeviceAllocator, &info_);
}

ProviderMemory::~ProviderMemory() { runtime_.get<ReleaseMemoryInfo>(info_); }

OrtAllocator* ProviderMemory::make_allocator() const { return new MemoryAllocator(memory_, info_); }

OrtDataTransferImpl* ProviderMemory::make_transfer() const {
  return new MemoryTransfer(runtime_, memory_, info_);
}

void ProviderMemory::end_allocator(OrtAllocator* allocator) {
  delete static_cast<MemoryAllocator*>(allocator);
}

}  // namespace tenon::ort
