#include "core/runtime/imported.h"

namespace tenon::runtime {

Result<std::shared_ptr<const Imported>> Imported::of(std::shared_ptr<Device> device, size_t space,
                                                     std::span<const std::byte> host,
                                                     Promise gone) {
  std::shared_ptr<Imported> made(new Imported(std::move(device), host.data(), std::move(gone)));
  TENON_ASSIGN(made->memory_, made->device_->import_memory(space, host));
  return made->memory_ != 0 ? made : nullptr;
}

Imported::~Imported() {
  if (memory_ == 0) return;
  try {
    auto gone = std::make_shared<Promise>(std::move(gone_));
    device_->free_imported(memory_, [gone] { gone->set({}); });
  } catch (const std::exception&) {  // No memory: the device has it until it is closed.
  }
}

}  // namespace tenon::runtime
