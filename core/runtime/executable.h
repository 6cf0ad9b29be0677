// Executable: a compiled Program, loaded on a device and ready to run.
//
// Thread-safety: all functions may be called from any thread; several executions may be in flight
// at once.
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
#include "core/runtime/foreign/host_functions.h"

namespace tenon::runtime {

/// Where a kernel runs.
enum class KernelPlacement : uint8_t {
  kDevice,
  kHost,     ///< Interpreted, because the backend declined it.
  kInlined,  ///< Every step that launches it is part of a segment or of a call that the backend
             ///< took.
};

/// Steps that the backend compiled as one executable (backend.h, compile_segment).
struct CompiledSegment {
  program::StepRange range;
  /// The memories of the Program with which it is launched (program::Segment).
  std::vector<program::MemoryRef> memories;
  std::string binary;
};

/// The result of compiling a Module for a target (hlo/driver/compile.h): a Program whose kernels
/// are legal for the target, and the backend's binary, segments and plans.
struct CompiledProgram {
  program::Program program;
  std::string binary;  ///< Binary of the kernels that are placed on the device, in order.
  std::vector<KernelPlacement> kernel_placements;  ///< One for each kernel.
  std::vector<CompiledSegment> segments;
  /// Library calls that the backend takes, by LibraryCallStep::lowered.
  std::map<program::SequenceId, backend::LibraryCallPlan> plans;

  // --- For people
  /// As the source has them, or "x0", "y0" …; empty, or one for each parameter and result.
  std::vector<std::string> parameter_names;
  std::vector<std::string> result_names;
  std::string made_by;  ///< "tenon 0.1.0"
};

/// Is told of the steps that executions run, by themselves or within loops and branches, on the
/// thread that gives their work to the device. Steps within a segment are not reported.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void begin(const program::Step& step) = 0;
  /// Steps of the same thread end in the reverse order of their begins, also after an error.
  virtual void end(const program::Step& step) = 0;
};

struct ExecuteOptions {
  /// Parameters whose memory the Program must not take although it could.
  std::vector<uint32_t> keep;
  /// Outlives the execution; may be null.
  StepObserver* observer = nullptr;
  /// The caller's data for host functions (HostCallFrame::context), kept until the execution ends.
  std::shared_ptr<const void> context;
};

struct Execution {
  std::vector<BufferPtr> results;
  Event done = Event::ready();
  /// Counts of steps by where they ran: complete when `done` has happened; must not be read
  /// earlier.
  std::shared_ptr<const program::StepCounts> steps;
};

/// Functions on Literals by the target names of custom calls. They precede HostFunctions.
using CustomCalls = std::map<std::string, program::CustomCallHandler>;

/// The first step that calls a function of the host, is not taken by the device, and is answered by
/// neither table; or null.
const program::Step* unanswered_call(const CompiledProgram& compiled, const CustomCalls& calls,
                                     const HostFunctionTable& functions);

class Executable {
 public:
  /// Loads the binary, copies the constants to the device, and prepares calls of host functions.
  /// Large constants stay in host memory if the device can read them in place (B28).
  static Result<std::shared_ptr<Executable>> load(std::shared_ptr<Device> device,
                                                  CompiledProgram compiled, CustomCalls calls,
                                                  HostFunctionTable functions = {});
  /// The same Program on another open device of the target: after a loss, on the Device that took
  /// the lost one's place.
  Result<std::shared_ptr<Executable>> reload(std::shared_ptr<Device> device) const;
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const program::Program& program() const;
  /// The compiled Program from which this was loaded.
  const CompiledProgram& compiled() const;
  const std::shared_ptr<Device>& device() const;
  const std::vector<Shape>& parameters() const;
  const std::vector<Shape>& results() const;
  /// For each parameter, whether an execution with these options takes its memory.
  std::vector<bool> donated_parameters(const ExecuteOptions& options) const;
  /// Bytes of the results that take over the memory of donated arguments (see execute).
  int64_t aliased_bytes() const;

  /// Runs the Program on one buffer per parameter. Returns when the work has been posted. An error
  /// of the call (wrong arguments, no room) leaves everything as it was. Later errors are errors of
  /// `done` and of each result. If it returns without an error, donated arguments are deleted. If
  /// the Program's first steps copy a donated argument to a result, the result takes over its
  /// memory, unless somebody holds it or it belongs to the caller.
  Result<Execution> execute(std::span<const BufferPtr> arguments,
                            const ExecuteOptions& options = {}) const;

 private:
  struct Impl;
  explicit Executable(std::shared_ptr<const Impl> state) : state_(std::move(state)) {}
  std::shared_ptr<const Impl> state_;
};

}  // namespace tenon::runtime
