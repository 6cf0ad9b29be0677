#include "core/runtime/memory/imported.h"

namespace tenon::runtime {

Result<std::shared_ptr<const Imported>> Imported::create(std::shared_ptr<Device> device,
                                                         size_t space,
                                                         std::span<const std::byte> host,
                                                         Promise gone) {
  std::shared_ptr<Imported> made(new Imported(std::move(device), host.data(), std::move(gone)));
  TENON_ASSIGN(made->memory_, made->device_->import_memory(space, host));
  return made->memory_ != 0 ? made : nullptr;
}

Imported::~Imported() {
  if (memory_ == 0) return;
  // Where the host has no memory to wait for work that may still read the bytes, they are never
  // said to be gone.
  Promise* const gone = gone_.release();
  try {
    device_->free_imported(memory_, [gone] {
      gone->set({});
      delete gone;
    });
  } catch (const std::exception&) {
  }
}

}  // namespace tenon::runtime
