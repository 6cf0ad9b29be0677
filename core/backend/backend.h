// The seam: what a backend implements, and all that the rest of Tenon knows of a device.
//
// The C++ skin of plugin.h, whose rules B1 … B27 hold here too; adapter.h turns either into the
// other. Backends wrap each other: a layer (layers/) is a Backend around a Backend.
//
// Thread-safety: rule B7.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend/target.h"
#include "core/kernel/kernel.h"

namespace tenon::backend {

/// Numbers that an open device chooses, never 0 (B10).
using MemoryHandle = uint64_t;
using ModuleHandle = uint64_t;
using EventHandle = uint64_t;

struct DeviceInfo {
  std::string name;  ///< "interp:0"
  TargetInfo target;
};

/// Why a kernel was not compiled; the numbers are those of TenonReason.
enum class Reason : uint8_t {
  kTooMuchScratch = 1,
  kTooMuchPrivate,
  kTooManyParameters,
  kTooMuchCode,
  kNoSuchOperation,
  kNoSuchType,
  kOther,
};
std::string_view name_of(Reason reason);

struct Declined {
  uint32_t kernel = 0;
  Reason reason = Reason::kOther;
  std::string text;
};

/// Bytes, or the kernels that were declined (B13).
struct Compiled {
  std::string binary;
  std::vector<Declined> declined;
};

/// Kernels, each alive until the call returns (B15).
using Kernels = std::span<const kernel::Kernel* const>;

/// A place in memory: of the device, or of the host if `memory` is 0.
struct Place {
  MemoryHandle memory = 0;
  int64_t offset = 0;
  std::byte* host = nullptr;

  static Place of_host(std::byte* pointer) { return {0, 0, pointer}; }
  static Place of_host(const std::byte* pointer) { return {0, 0, const_cast<std::byte*>(pointer)}; }
  bool on_host() const { return memory == 0; }
};

struct Launch {
  ModuleHandle module = 0;
  uint32_t kernel = 0;
  std::span<const Place> buffers;
  std::span<const uint64_t> scalars;
  const char* label = "";
  const volatile uint32_t* stop = nullptr;  ///< B27
};

/// An open device. The destructor is `close` (B11).
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual Result<ModuleHandle> load(std::string_view binary, Kernels kernels) = 0;
  virtual void unload(ModuleHandle module) = 0;
  virtual Result<MemoryHandle> allocate(uint32_t space, int64_t bytes) = 0;
  virtual void free(MemoryHandle memory) = 0;
  virtual Status copy(uint32_t queue, const Place& destination, const Place& source,
                      int64_t bytes) = 0;
  virtual Status launch(uint32_t queue, const Launch& launch) = 0;
  virtual Result<EventHandle> record(uint32_t queue) = 0;
  virtual Status wait(uint32_t queue, EventHandle event) = 0;
  /// True: done. False: pending. An error is the event's, which is done then, or the call's.
  virtual Result<bool> await(EventHandle event, int64_t timeout) = 0;
  virtual void release(EventHandle event) = 0;

  // --- Optional: kUnimplemented, and the host does it with the functions above

  virtual Status fill(uint32_t queue, const Place& destination, int64_t bytes,
                      std::span<const std::byte> pattern);
  virtual Result<std::byte*> map(MemoryHandle memory);
  virtual Result<double> event_time(EventHandle event);
  virtual Status abort();
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Lower case, one word.
  virtual std::string_view name() const = 0;
  /// For people.
  virtual std::string_view version() const = 0;
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  virtual Result<std::unique_ptr<Device>> open(size_t index) = 0;
  virtual Result<Compiled> compile(const TargetInfo& target, Kernels kernels) = 0;

  /// The backend within all layers, whose devices these are.
  virtual const Backend& root() const { return *this; }
};

}  // namespace tenon::backend
