// conformance/run/: runs cases in worker processes, so that a crash costs one case.
//
// A worker opens the device, then answers requests until its input ends. Requests and answers are
// lines. The worker's standard input has the requests: numbers of cases. The answers, a JSON object
// each, go to a descriptor of their own, since a plug-in may print:
//
//   {"ready": DESCRIPTION, "counts_steps": …}   the device is open; else {"error": TEXT}
//   {"begin": NAME}                             a case begins: the end of the one before was
//   survived
//   {"found": RECORD}                           a failure, before its program is reduced
//   RECORD                                      the result of the case
#pragma once

#include <functional>

#include "conformance/cases/case.h"

namespace tenon::conformance {

struct WorkerOptions {
  uint64_t seed = 0;
  bool reduce = true;
  /// Bounds that the device's declaration relaxes.
  std::vector<RelaxedBound> relaxed = {};
  /// Where answers go.
  int answers = 3;
};

/// Serves cases until standard input ends. Returns 0, or 1 if the target does not open: the first
/// answer then has the error.
int serve(const std::vector<ConformanceCase>& cases, const WorkerOptions& options,
          const std::function<Result<std::unique_ptr<Target>>()>& open);

/// Runs one case in this process. `on_failure` gets a failure before its program is reduced.
CaseResult run_case(const ConformanceCase& one, Target& target, const WorkerOptions& options,
                    const std::function<void(const CaseResult&)>& on_failure = {});

}  // namespace tenon::conformance
