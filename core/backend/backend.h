// core/backend/: the seam: the interface that a backend implements, in C++ and in C.
//
// The seam: what a backend implements, and all that the rest of Tenon knows of a device.
//
// The C++ skin of plugin.h, whose rules B1 … B29 hold here too; adapter.h turns either into the
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
#include "core/kernel/ir/kernel.h"
#include "core/program/program.h"

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

/// A library call on arrays, in Backend::plan.
struct LibraryCallSite {
  const program::LibraryCall& call;
  std::span<const Shape> operands;
  std::span<const Shape> results;
  /// For each operand, whether it is a constant; a constant may be packed once.
  const std::vector<bool>& constant;
};

/// How a backend does a library call.
struct LibraryCallPlan {
  std::string plan;             ///< The backend's own words, given back with each call.
  int64_t workspace_bytes = 0;  ///< Memory for the time of a call.
  /// For each operand, the bytes of its packed form; 0, or an empty list: it is not packed.
  std::vector<int64_t> packed_bytes;
  double seconds = 0;  ///< Estimated time; 0: not known.
};

/// A library call for a queue. Operands are in their packed form where the plan has one.
struct LibraryCallLaunch {
  std::string_view plan;  ///< Lives until the work is done.
  std::span<const MemoryAddress> operands;
  std::span<const MemoryAddress> results;
  MemoryAddress workspace;
  const char* label = "";
  const volatile uint32_t* stop = nullptr;  ///< B27
};

/// An array copied between two places; each dimension has its own stride at either.
struct Box {
  int64_t element_bytes = 1;
  Dims sizes;
  Dims destination_strides;  ///< In bytes; negative ones too.
  Dims source_strides;
};
/// The copy, between two places of the host.
void copy_box(std::byte* to, const std::byte* from, const Box& box);

/// A figure of an open device, for people.
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
  /// True: done. An error is the event's, which is done then. False: pending, or not known to be
  /// done, since the backend could not say (with a timeout less than 0 nothing else is pending).
  virtual Result<bool> await(EventHandle event, int64_t timeout) = 0;
  virtual void release(EventHandle event) = 0;

  // --- Optional: kUnimplemented, and the host does it with the functions above

  virtual Status fill(uint32_t queue, const MemoryAddress& destination, int64_t bytes,
                      std::span<const std::byte> pattern);
  virtual Status copy_box(uint32_t queue, const MemoryAddress& destination,
                          const MemoryAddress& source, const Box& box);
  virtual Status call(uint32_t queue, const LibraryCallLaunch& call);
  /// Writes the packed form of an operand of the plan.
  virtual Status pack(uint32_t queue, std::string_view plan, uint32_t operand,
                      const MemoryAddress& destination, const MemoryAddress& source);
  /// The host's pointer to memory of a host-visible space, until free (B29).
  virtual Result<std::byte*> map(MemoryHandle memory);
  /// Bytes of the host's as a memory of the space, without a copy (B28). kUnimplemented,
  /// kInvalidArgument and kResourceExhausted decline: they are copied.
  virtual Result<MemoryHandle> import_memory(uint32_t space, std::span<const std::byte> host);
  virtual Result<double> event_time(EventHandle event);
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

  // --- Optional: kUnimplemented declines, and the host does it with kernels

  virtual Result<LibraryCallPlan> plan(const TargetInfo& target, const LibraryCallSite& site);
  /// Whether compile_segment is worth asking, before a Program is made for it.
  virtual bool takes_segments() const { return false; }
  /// A binary of one kernel that does the steps of `segment`'s entry. Its buffers are the memories
  /// of the Program: parameters, results, constants, each by its index, and the block of
  /// temporaries if there is one. Calls among the steps that plan() took are done as the backend
  /// likes, by itself or by what they are lowered to. It is loaded with no kernels, and launched
  /// like any other.
  virtual Result<std::string> compile_segment(const TargetInfo& target,
                                              const program::Program& segment);

  /// The backend within all layers, whose devices these are.
  virtual const Backend& root() const { return *this; }
};

}  // namespace tenon::backend
