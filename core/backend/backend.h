// core/backend/: the seam: the interface that a backend implements, in C++ and in C.
//
// The seam is the only interface between the rest of Tenon and a device.
//
// This is the C++ form of plugin.h, whose rules B1 … B29 apply here too; adapter.h converts each
// form to the other. Backends may be nested: a layer (layers/) is a Backend around a Backend.
//
// Thread-safety: rule B7.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend/target.h"
#include "core/kernel/ir/kernel.h"
#include "core/program/program.h"

namespace tenon::backend {

/// Handles that an open device chooses, never 0 (B10).
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

/// The binary, or the kernels that were declined (B13).
struct Compiled {
  std::string binary;
  std::vector<Declined> declined;
};

/// Kernels that are valid until the call returns (B15).
using Kernels = std::span<const kernel::Kernel* const>;

/// An address in device memory, or in host memory if `memory` is 0.
struct MemoryAddress {
  MemoryHandle memory = 0;
  int64_t offset = 0;
  std::byte* host = nullptr;

  static MemoryAddress of_host(std::byte* pointer) { return {0, 0, pointer}; }
  static MemoryAddress of_host(const std::byte* pointer) {
    return {0, 0, const_cast<std::byte*>(pointer)};
  }
  bool on_host() const { return memory == 0; }
};

/// A library call with its arrays, as Backend::plan gets it.
struct LibraryCallSite {
  const program::LibraryCall& call;
  std::span<const Shape> operands;
  std::span<const Shape> results;
  /// For each operand, whether it is a constant; a constant may be packed once.
  const std::vector<bool>& constant;
};

/// How a backend runs a library call.
struct LibraryCallPlan {
  std::string plan;             ///< Bytes in the backend's own format, passed to each call.
  int64_t workspace_bytes = 0;  ///< Memory that each call needs while it runs.
  /// For each operand, the bytes of its packed form; 0, or an empty list, if it is not packed.
  std::vector<int64_t> packed_bytes;
  double seconds = 0;  ///< Estimated time; 0: unknown.
};

/// A library call to be queued. If the plan packs an operand, the operand is in its packed form.
struct LibraryCallLaunch {
  std::string_view plan;  ///< Valid until the work is done.
  std::span<const MemoryAddress> operands;
  std::span<const MemoryAddress> results;
  MemoryAddress workspace;
  const char* label = "";
  const volatile uint32_t* stop = nullptr;  ///< B27
};

/// An array to copy between two addresses; each dimension has its own stride on either side.
struct Box {
  int64_t element_bytes = 1;
  Dims sizes;
  Dims destination_strides;  ///< In bytes; may be negative.
  Dims source_strides;
};
/// Copies between two host addresses.
void copy_box(std::byte* to, const std::byte* from, const Box& box);

/// A box as rows of bytes within slices: the form that copy engines take (clEnqueueCopyBufferRect,
/// cuMemcpy3D). Pitches are the bytes from one row or slice to the next; rows do not overlap, and a
/// slice's pitch is a multiple of its rows' pitch.
struct PitchedBox {
  struct Pitches {
    size_t row = 0;
    size_t slice = 0;
  };
  size_t row_bytes = 0;
  size_t rows = 1;
  size_t slices = 1;
  Pitches destination;
  Pitches source;
};
/// Nothing if a box has no such form (transposed, reversed, repeated, of more dimensions) or is
/// empty: a backend then declines it as kUnimplemented.
std::optional<PitchedBox> pitched(const Box& box);

/// A statistic of an open device, for people.
struct Statistic {
  std::string name;
  double value = 0;
};

struct KernelLaunch {
  ModuleHandle module = 0;
  uint32_t kernel = 0;
  std::span<const MemoryAddress> buffers;
  std::span<const uint64_t> scalars;
  const char* label = "";
  const volatile uint32_t* stop = nullptr;  ///< B27
};

/// When the work between two events of a queue ran: seconds from a point that is fixed while the
/// device is open. Without work, both are the time of the event.
struct EventTimes {
  std::optional<double> start;  ///< Nothing: the device does not tell.
  double end = 0;
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
  virtual Status copy(uint32_t queue, const MemoryAddress& destination, const MemoryAddress& source,
                      int64_t bytes) = 0;
  virtual Status launch(uint32_t queue, const KernelLaunch& launch) = 0;
  virtual Result<EventHandle> record(uint32_t queue) = 0;
  virtual Status wait(uint32_t queue, EventHandle event) = 0;
  /// True: the event is done; an error is the event's, which is then done too. False: the event is
  /// pending, or the backend could not tell whether it is done (with a timeout less than 0, false
  /// has only this second meaning).
  virtual Result<bool> await(EventHandle event, int64_t timeout) = 0;
  virtual void release(EventHandle event) = 0;

  // --- Optional: kUnimplemented, and the host uses the functions above instead

  virtual Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
                      std::span<const std::byte> pattern);
  virtual Status copy_box(uint32_t queue, const MemoryAddress& destination,
                          const MemoryAddress& source, const Box& box);
  virtual Status call(uint32_t queue, const LibraryCallLaunch& call);
  /// Writes the packed form of an operand of the plan.
  virtual Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
                      const MemoryAddress& destination, const MemoryAddress& source);
  /// The host's pointer to memory in a host-visible space, valid until free (B29).
  virtual Result<std::byte*> map(MemoryHandle memory);
  /// Makes host bytes a memory of the space, without a copy (B28). kUnimplemented, kInvalidArgument
  /// and kResourceExhausted decline: the host copies the bytes.
  virtual Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host);
  /// The times of a done event.
  virtual Result<EventTimes> event_times(EventHandle event);
  virtual Status abort();
  virtual Result<std::vector<Statistic>> statistics();
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

  // --- Optional

  /// The source that the device's own compiler gets for these kernels, for people. The default
  /// compiles them and returns what kernel::render() made on this thread meanwhile, also if the
  /// compiler refuses that. kUnimplemented: the backend renders no source, or declines a kernel.
  virtual Result<std::string> source(const TargetInfo& target, Kernels kernels);

  // --- Optional: kUnimplemented declines, and the host uses kernels instead

  virtual Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site);
  /// Whether compile_segment may accept segments; if false, the host makes none.
  virtual bool takes_segments() const { return false; }
  /// Compiles a binary with one kernel that runs the steps of `segment`'s entry. Its buffers are
  /// the memories of the Program: parameters, results and constants, each by its index, and the
  /// block of temporaries if there is one. For library calls that plan() took, the backend chooses
  /// whether to run them itself or by their lowered steps. The binary is loaded with no kernels,
  /// and launched like any other.
  virtual Result<std::string> compile_segment(const TargetInfo& target,
                                              const program::Program& segment);

  /// The innermost backend, within all layers, which owns the devices.
  virtual const Backend& root() const { return *this; }

 protected:
  /// source() by compiling; `none`: what an error says of a backend that renders nothing.
  Result<std::string> rendered_source(const TargetInfo& target, Kernels kernels,
                                      std::string_view none);
  /// The error of source() for kernels that are declined: kUnimplemented.
  tl::unexpected<Status> declined_source(Kernels kernels, const Declined& declined) const;
};

}  // namespace tenon::backend
