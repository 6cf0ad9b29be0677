// Shares cases out among worker processes and collects their outcomes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/compare/record.h"
#include "core/base/status.h"

namespace tenon::conformance {

struct RunnerSummary {
  std::vector<std::string> device;  ///< The target's description.
  bool counts_steps = true;         ///< Whether the target counts the steps that it runs.
  int workers = 0;                  ///< The largest number that ran at once.
  int restarts = 0;                 ///< Workers that were started in place of one that ended.
  bool interrupted = false;
};

struct RunnerOptions {
  /// A worker's program (worker.h), which serves the same list of cases. It runs in a copy of this
  /// process, which has one thread: the list is made once.
  std::function<int()> worker;
  /// Workers at once. If the device opens in one process alone, one worker runs.
  int jobs = 1;
  /// Seconds that a case may take before its worker is killed.
  double timeout = 60;
  /// Called once, when the device has opened and before the first case; an error ends the run.
  std::function<Status(const RunnerSummary&)> on_open = {};
};

/// A case for the workers: its number in their list, and its name.
struct Request {
  size_t number = 0;
  std::string name;
  bool alone = false;  ///< It begins when no other case runs, after those that are not alone.
};

/// Runs the cases. `on_record` is called on this thread as outcomes arrive, in any order. A worker
/// that ends within a case gives it the outcome kCrash, with the signal and its last line; one that
/// takes too long is killed: kTimeout. An end between two cases, or when the device is closed at
/// the end, is the fault of the case before. If the device opened and does not open again, the
/// cases left are kDeviceLost. `*stop` ends the run early. Errors: no worker starts, or the device
/// never opens.
Result<RunnerSummary> run_cases(const std::vector<Request>& requests, const RunnerOptions& options,
                                const std::function<void(CaseRecord)>& on_record,
                                const volatile bool* stop = nullptr);

}  // namespace tenon::conformance
