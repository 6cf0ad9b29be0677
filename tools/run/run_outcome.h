// The options of `tenon run`, what a run gives, and how that is printed and written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/evaluator/checks.h"
#include "hlo/passes/rewrite/rewriter.h"
#include "tools/device_options.h"
#include "tools/run/run_times.h"

namespace tenon::tools {

struct RunOptions {
  std::string file;
  std::string device;
  DeviceOptions device_options;
  std::vector<std::string> args;
  std::vector<std::string> shapes;
  std::string out_dir;
  std::string legalize;
  std::string entry;
  bool json = false;
  bool wide = false;
  bool split = false;
  bool quiet = false;
  bool strict = false;
  bool time = false;
  bool steps = false;
  int64_t repeat = 0;  ///< 0: 10 with --time or --steps, else once.
  int64_t time_limit =
      -1;  ///< Milliseconds of an execution; 0: none, -1: that of TENON_TIME_LIMIT.
  hlo::rewrite::Options rewrites;
  std::vector<std::string> tuning;
};

struct RunOutcome {
  std::vector<Literal> results;
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  std::optional<program::StepCounts> steps;  ///< Absent for the evaluator.
  int64_t folded = 0;                        ///< Ops that were evaluated at compile time.
  std::string declined;                      ///< A step that the device declined, with the reason.
  std::vector<std::string> warnings;         ///< Warnings of the compilation.
  hlo::RunTimes times;
  std::shared_ptr<StepTimes> step_times;  ///< With --steps.
  hlo::RunTimes times_of_steps;           ///< Times of the run that measured them.
};

/// Writes all results to DIR/out_N.npy, or none.
Status write_results(const RunOutcome& outcome, const std::string& directory);

/// The results on standard output, as text or JSON; where the program ran, and its times, on
/// standard error.
void print_results(const RunOutcome& outcome, const RunOptions& options);

}  // namespace tenon::tools
