#include "hlo/driver/interp.h"
#include "hlo/driver/compile.h"

#include <mutex>

#include "hlo/driver/host_calls.h"

namespace tenon::hlo {
namespace {

// The device as one process sees it.
class Interp {
 public:
  Interp(const Checks& checks, const InterpOptions& options, Evaluator* process)
      : checks_(checks), options_(options), process_(process) {}

  Result<std::vector<Literal>> run(const Module& module, std::span<const Literal> arguments,
                                   const std::string& entry) {
    LowerOptions lower = options_.lower;
    lower.entry = entry;
    if (options_.legal_form) {
      lower.limits.fma = options_.legal_form->fma;
      lower.limits.private_memory = options_.legal_form->private_memory;
    }
    TENON_ASSIGN(const program::Program program, compile_to_program(module, lower));
    return run(program, arguments);
  }

  Result<std::vector<Literal>> run(const program::Program& program,
                                   std::span<const Literal> arguments) {
    program::ProgramInterpreter interpreter(program);
    if (options_.legal_form) interpreter.set_legal_form(*options_.legal_form);
    const auto run_process = [this](const Module& module, std::span<const Literal> values,
                                    const std::string& entry, Evaluator* process) {
      return Interp(checks_, options_, process).run(module, values, entry);
    };
    TENON_ASSIGN(auto calls, host_calls(program, checks_, process_, run_process));
    for (auto& [target, handler] : calls) {
      interpreter.set_custom_call(target, std::move(handler));
    }
    auto results = interpreter.run(arguments, options_.interpreter);
    if (options_.steps != nullptr) {
      static std::mutex mutex;  // Processes end in threads of their own.
      const std::lock_guard lock(mutex);
      *options_.steps += interpreter.steps();
    }
    return results;
  }

 private:
  const Checks& checks_;
  const InterpOptions& options_;
  Evaluator* process_;
};

}  // namespace

Result<std::vector<Literal>> run_on_interp(const Module& module, std::span<const Literal> arguments,
                                           const Checks& checks, const InterpOptions& options) {
  return Interp(checks, options, nullptr).run(module, arguments, options.lower.entry);
}

Result<std::vector<Literal>> run_on_interp(const program::Program& program,
                                           std::span<const Literal> arguments, const Checks& checks,
                                           const InterpOptions& options) {
  return Interp(checks, options, nullptr).run(program, arguments);
}

}  // namespace tenon::hlo
