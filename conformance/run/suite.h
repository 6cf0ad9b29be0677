// Runs selected cases, with a journal from which an interrupted run goes on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/run/journal.h"
#include "conformance/run/runner.h"

namespace tenon::conformance {

struct SuiteOptions {
  RunnerOptions runner;
  /// The run, without its device and its selection.
  RunIdentity identity;
  /// The path of the journal. Empty: none is written.
  std::string journal;
  /// Whether to take the cases that the journal has, and to run the others.
  bool resume = false;
};

struct SuiteResult {
  std::vector<CaseRecord> records;  ///< In the order of the cases.
  RunnerSummary summary;
  size_t resumed = 0;  ///< Records that the journal had.
  Status journal;      ///< Why records are missing in the journal, if any are.
};

/// Runs the cases with these indices. `on_record` is called on this thread for each outcome, those
/// of the journal first. The journal stays where it is: the caller removes it when the results are
/// safe. Errors: those of run_cases and of the journal, which may be of another run.
Result<SuiteResult> run_suite(const std::vector<ConformanceCase>& cases,
                              const std::vector<size_t>& chosen, SuiteOptions options,
                              const std::function<void(const CaseRecord&)>& on_record,
                              const volatile bool* stop = nullptr);

}  // namespace tenon::conformance
