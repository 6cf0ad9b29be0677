// conformance/cases/interface/: cases that call the functions of a backend or of the runtime.
//
// Access to a backend for cases that call its interface themselves (core/backend/backend.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "core/backend/backend.h"

namespace tenon::conformance {

using Bytes = std::vector<std::byte>;

/// An open device, with shorthands. The first error of the device ends a case.
class SeamDevice {
 public:
  /// Opens the device that the target released.
  static Result<std::unique_ptr<SeamDevice>> open(BackendDevice device);

  backend::Backend& backend() { return *source_.backend; }
  backend::Device& device() { return *device_; }
  const backend::TargetInfo& target() const { return info_.target; }
  int64_t alignment() const { return target().spaces[0].alignment; }
  /// Closes the device, with the work that it has; reopen() opens it again.
  void close() { device_.reset(); }
  Status reopen();

  /// `bytes` bytes of the first space.
  Result<backend::MemoryHandle> allocate(int64_t bytes, uint32_t space = 0) {
    return device_->allocate(space, bytes);
  }
  /// Copies, and waits for them.
  Status upload(backend::MemoryAddress to, std::span<const std::byte> from, uint32_t queue = 0);
  Result<Bytes> download(backend::MemoryAddress from, int64_t bytes, uint32_t queue = 0);
  /// Waits for all work of the queue, and returns its error.
  Status finish(uint32_t queue = 0);

  /// Compiles and loads kernels, legalised for the target.
  struct Loaded {
    std::vector<kernel::Kernel> kernels;
    std::string binary;
    backend::ModuleHandle module = 0;
  };
  Result<Loaded> load_text(const std::vector<std::string>& texts);
  Result<Loaded> load(const std::vector<kernel::Kernel>& kernels);
  Status launch(backend::ModuleHandle module, std::vector<backend::MemoryAddress> buffers,
                std::vector<uint64_t> scalars = {}, uint32_t queue = 0, uint32_t kernel = 0);

  /// The kernel that computed a wrong value (kernel_listing.h), for the case's result.
  void set_listing(std::string listing) { listing_ = std::move(listing); }
  const std::string& listing() const { return listing_; }

  /// Launches that were accepted, and calls of other functions.
  int64_t launches() const { return launches_; }

 private:
  explicit SeamDevice(BackendDevice source) : source_(std::move(source)) {}

  BackendDevice source_;
  backend::DeviceInfo info_;
  std::unique_ptr<backend::Device> device_;
  int64_t launches_ = 0;
  std::string listing_;
};

/// Bytes that differ from their neighbours, by a seed.
Bytes test_bytes(int64_t count, uint64_t seed);
/// An error that names the first byte that differs, and the rule.
Status expect_bytes(std::string_view rule, std::span<const std::byte> got,
                    std::span<const std::byte> expected);
/// An error with the rule, unless `holds`.
Status expect(bool holds, std::string_view rule, std::string_view what);

/// A case that opens the device and checks it with values of a seed. Its steps are the launches;
/// one that needs none has `launches` false, and counts as one step.
using SeamCheck = std::function<Status(SeamDevice& device, uint64_t seed)>;
ConformanceCase seam_case(std::string name, SeamCheck check, bool launches = true);

}  // namespace tenon::conformance
