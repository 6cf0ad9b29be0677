// Runs a Program on the host by interpreting its kernels: used by the device `interp`, and as the
// oracle for lowering and for backends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/kernel/interpreter/interpreter.h"
#include "core/kernel/legalize/legalize.h"
#include "core/program/program.h"
#include "core/program/step_counts.h"

namespace tenon::program {

/// A host function for a custom call: maps operands to results with the shapes of the call's result
/// buffers.
using CustomCallHandler = std::function<Result<std::vector<Literal>>(
    const Step& step, const CustomCall& call, const std::vector<Literal>& operands,
    const std::vector<Shape>& results)>;

/// The addresses of the arrays of one run; each array has the size of its buffer. Kernels write
/// only to results and temporaries.
struct Memories {
  std::vector<std::byte*> parameters, results, constants;
  std::byte* temporaries = nullptr;
};

/// Is told of each launch before it runs, with the buffers as they are then.
using LaunchObserver =
    std::function<void(const Launch& launch, std::span<const kernel::BufferArgument> buffers)>;

/// Thread-safety: one run at a time.
class ProgramInterpreter {
 public:
  /// `program` must be validated and must outlive the interpreter.
  explicit ProgramInterpreter(const Program& program);
  ~ProgramInterpreter();

  void set_custom_call(std::string target, CustomCallHandler handler) {
    handlers_[std::move(target)] = std::move(handler);
  }

  /// Runs each kernel legalised to `features`, with the same results.
  void set_target_features(const kernel::TargetFeatures& features) { features_ = features; }

  void set_launch_observer(LaunchObserver observer) { observer_ = std::move(observer); }

  /// `arguments` has one literal per parameter, of its shape. Errors carry the step's label.
  Result<std::vector<Literal>> run(std::span<const Literal> arguments,
                                   const kernel::InterpreterOptions& options = {});
  /// The same in the caller's memory.
  Status run_in(const Memories& memories, const kernel::InterpreterOptions& options = {});

  /// Counts of all runs so far.
  const StepCounts& steps() const { return steps_; }

 private:
  class Run;
  const Program& program_;
  std::map<std::string, CustomCallHandler> handlers_;
  std::optional<kernel::TargetFeatures> features_;
  LaunchObserver observer_;
  std::vector<std::unique_ptr<kernel::Interpreter>> kernels_;  // created at the first launch
  StepCounts steps_;
};

}  // namespace tenon::program
