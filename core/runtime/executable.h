// Executable: a compiled Program, loaded on a device and ready to run.
//
// Thread-safety: everything, from any thread; several executions may be on their way at once.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/program/interpreter.h"
#include "core/program/program.h"
#include "core/program/segment.h"
#include "core/runtime/buffer.h"

namespace tenon::runtime {

/// Where a kernel runs.
enum class KernelPlacement : uint8_t {
  kDevice,
  kHost,     ///< Interpreted, since the backend declined it.
  kInlined,  ///< Every step that launches it is within a segment or a call that the backend took.
};

/// Steps that the backend compiled as one (backend.h, compile_segment).
struct CompiledSegment {
  program::StepRange range;
  /// The memories of the Program that it is launched with (program::Segment).
  std::vector<program::MemoryRef> memories;
  std::string binary;
};

/// The result of a driver's compilation of a Module for a target (hlo/driver/compile.h): a Program
/// whose kernels are legal for it, and the backend's binary, segments and plans.
struct CompiledProgram {
  program::Program program;
  std::string binary;  ///< Binary of the kernels that are placed on the device, in order.
  std::vector<KernelPlacement> kernel_placements;  ///< One for each kernel.
  std::vector<CompiledSegment> segments;
  /// Library calls that the backend takes, by LibraryCallStep::lowered.
  std::map<program::SequenceId, backend::LibraryCallPlan> plans;
};

struct ExecuteOptions {
  /// Parameters that keep their memory although the Program would take it.
  std::vector<uint32_t> keep;
};

struct Execution {
  std::vector<BufferPtr> results;
  Event done = Event::ready();
  /// Counts of steps by where they ran: complete once `done` has happened, not to be read before.
  std::shared_ptr<const program::StepCounts> steps;
};

/// Functions of the host by the target names of custom calls.
using CustomCalls = std::map<std::string, program::CustomCallHandler>;

class Executable {
 public:
  /// Loads the binary and copies the constants to the device; large ones stay in the host's memory
  /// where the device takes them as they lie (B28).
  static Result<std::shared_ptr<Executable>> load(std::shared_ptr<Device> device,
                                                  CompiledProgram compiled, CustomCalls calls);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const program::Program& program() const;
  /// The compiled Program that it was loaded from.
  const CompiledProgram& compiled() const;
  const std::shared_ptr<Device>& device() const;
  std::vector<Shape> parameters() const;
  std::vector<Shape> results() const;
  /// For each parameter, whether an execution with these options takes its memory.
  std::vector<bool> donated_parameters(const ExecuteOptions& options) const;
  /// Bytes of the results that take over the memory of donated arguments (execute).
  int64_t aliased_bytes() const;

  /// Runs it on one buffer a parameter. It returns when the work has been posted; errors of that
  /// (wrong arguments, no room) leave everything as it was. Later errors are errors of `done` and
  /// of each result. Donated arguments are gone when it has returned without an error; a result
  /// takes over the memory of one that the Program's first steps copy to it, unless somebody holds
  /// it or it is the caller's own.
  Result<Execution> execute(std::span<const BufferPtr> arguments,
                            const ExecuteOptions& options = {}) const;

 private:
  struct Impl;
  explicit Executable(std::shared_ptr<const Impl> state) : state_(std::move(state)) {}
  std::shared_ptr<const Impl> state_;
};

}  // namespace tenon::runtime
