// A device through the runtime (core/runtime), as a framework uses it: for cases that hold buffers
// and executables themselves.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "conformance/cases/case.h"

namespace tenon::conformance {

/// A client of a device that its target has released (Target::release_device), and the steps that
/// its executions ran. Thread-safety: `load` and `put` are thread-safe, the others are not.
class RuntimeDevice {
 public:
  static Result<RuntimeDevice> open(const BackendDevice& source);

  const std::shared_ptr<runtime::Client>& client() const { return client_; }
  const std::shared_ptr<runtime::Device>& device() const { return client_->devices()[0]; }
  const backend::TargetInfo& target() const { return device()->info().target; }

  /// Compiles a static program. Errors: those of import and of compilation.
  Result<std::shared_ptr<runtime::Executable>> load(const std::string& text) const;
  Result<std::shared_ptr<runtime::Executable>> load(const hlo::Module& module) const;

  Result<runtime::BufferPtr> put(const Literal& array,
                                 runtime::MemoryKind kind = runtime::MemoryKind::kDevice) const;

  Result<runtime::Execution> execute(const runtime::Executable& executable,
                                     std::vector<runtime::BufferPtr> arguments);

  /// Runs on these arrays, and waits.
  Result<std::vector<Literal>> run(const runtime::Executable& executable,
                                   const std::vector<Literal>& arguments);

  /// The sum over the executions that succeeded; waits for them.
  program::StepCounts steps() const;
  /// The first step of a loaded program that the device declined; empty if there is none.
  std::string declined() const;

 private:
  struct DeclinedStep {
    std::mutex mutex;
    std::string text;
  };

  std::shared_ptr<runtime::Client> client_;
  std::shared_ptr<DeclinedStep> declined_ = std::make_shared<DeclinedStep>();
  std::vector<runtime::Execution> executions_;
};

/// Copies results to the host, and waits for them.
Result<std::vector<Literal>> fetch(const std::vector<runtime::BufferPtr>& buffers);

/// Runs `check` on the device of the case's target, which gets it back. The result is that of its
/// error, kNotSupported if the device declined a step, or kNotRun if it ran none.
CaseResult run_on_runtime(CaseContext& context,
                          const std::function<Status(RuntimeDevice& device)>& check);

}  // namespace tenon::conformance
