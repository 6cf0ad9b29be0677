#include "hlo/driver/interpreted.h"
#include "hlo/driver/compile.h"

#include <mutex>

#include "hlo/driver/host_calls.h"

namespace tenon::hlo {
namespace {

// The device as one process uses it.
class InterpretedProcess {
 public:
  InterpretedProcess(const Checks& checks, const InterpretedRunOptions& options, Evaluator* process)
      : checks_(checks), options_(options), process_(process) {}

  Result<std::vector<Literal>> run(const Module& module, std::span<const Literal> arguments,
                                   const std::string& entry) {
    LowerOptions lower = options_.lower;
    lower.entry = entry;
    if (options_.features) {
      lower.limits.fma = options_.features->fma;
      lower.limits.private_memory = options_.features->private_memory;
    }
    TENON_ASSIGN(const program::Program program, compile_to_program(module, lower));
    return run(program, arguments);
  }

  Result<std::vector<Literal>> run(const program::Program& program,
                                   std::span<const Literal> arguments) {
    program::ProgramInterpreter interpreter(program);
    if (options_.features) interpreter.set_target_features(*options_.features);
    const auto run_process = [this](const Module& module, std::span<const Literal> values,
                                    const std::string& entry, Evaluator* process) {
      return InterpretedProcess(checks_, options_, process).run(module, values, entry);
    };
    TENON_ASSIGN(auto calls, host_calls(program, checks_, process_, run_process));
    for (auto& [target, handler] : calls) {
      interpreter.set_custom_call(target, std::move(handler));
    }
    auto results = interpreter.run(arguments, options_.interpreter);
    if (options_.steps != nullptr) {
      static std::mutex mutex;  // Processes end on their own threads.
      const std::lock_guard lock(mutex);
      *options_.steps += interpreter.steps();
    }
    return results;
  }

 private:
  const Checks& checks_;
  const InterpretedRunOptions& options_;
  Evaluator* process_;
};

}  // namespace

Result<std::vector<Literal>> run_interpreted(const Module& module,
                                             std::span<const Literal> arguments,
                                             const Checks& checks,
                                             const InterpretedRunOptions& options) {
  return InterpretedProcess(checks, options, nullptr).run(module, arguments, options.lower.entry);
}

Result<std::vector<Literal>> run_interpreted(const program::Program& program,
                                             std::span<const Literal> arguments,
                                             const Checks& checks,
                                             const InterpretedRunOptions& options) {
  return InterpretedProcess(checks, options, nullptr).run(program, arguments);
}

}  // namespace tenon::hlo
