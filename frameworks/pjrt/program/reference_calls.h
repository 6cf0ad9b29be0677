// Functions of the host in Modules that are evaluated.
#pragma once

#include <map>

#include "core/runtime/foreign/host_functions.h"
#include "hlo/evaluator/evaluator.h"

namespace tenon::pjrt {

/// The calls of a Module whose targets are functions of the host.
///
/// Thread-safety: calls from any thread, several at once.
class ReferenceCalls {
 public:
  /// `module` must outlive it, and the pass call-layouts must have run on it. Errors: those of the
  /// functions.
  static Result<ReferenceCalls> prepare(const hlo::Module& module,
                                        const runtime::HostFunctionTable& functions);
  /// Lets an evaluator of the Module call them, for one execution. They must outlive it.
  void install(hlo::Evaluator& evaluator, int64_t execution) const;

 private:
  struct Call {
    program::ForeignCall foreign;
    runtime::HostCall run;
  };
  Status add(const hlo::Computation& computation, const runtime::HostFunctionTable& functions);
  Result<std::vector<hlo::EvalValue>> call(const hlo::Instruction& op,
                                           const std::vector<hlo::EvalValue>& operands,
                                           int64_t execution) const;

  std::map<const hlo::Instruction*, Call> calls_;
};

}  // namespace tenon::pjrt
