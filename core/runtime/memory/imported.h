// Imported: bytes of the host's that a device reads where they lie (B28).
//
// Thread-safety: all of it; the last share may be dropped on any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "core/runtime/device.h"

namespace tenon::runtime {

class Imported {
 public:
  /// Null if the device declines. `gone` happens when no work is left that reads the bytes and
  /// nobody has a share. Errors: a lost device; those of the backend.
  static Result<std::shared_ptr<const Imported>> create(std::shared_ptr<Device> device,
                                                        size_t space,
                                                        std::span<const std::byte> host,
                                                        Promise gone);
  ~Imported();
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  backend::MemoryAddress place(int64_t offset = 0) const { return {memory_, offset, nullptr}; }
  const std::byte* host() const { return host_; }

 private:
  Imported(std::shared_ptr<Device> device, const std::byte* host, Promise gone)
      : device_(std::move(device)),
        host_(host),
        gone_(std::make_unique<Promise>(std::move(gone))) {}

  const std::shared_ptr<Device> device_;
  const std::byte* const host_;
  std::unique_ptr<Promise> gone_;
  backend::MemoryHandle memory_ = 0;
};

}  // namespace tenon::runtime
