// Runs jobs in forked processes: a device that is wrong may crash or hang.
//
// A job writes lines, which the parent takes. Processes share what was made before, such as the
// list of cases; no thread may have been started then.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tenon::conformance {

enum class JobEnd : uint8_t { kDone, kCrashed, kTimedOut };

struct JobResult {
  JobEnd end = JobEnd::kDone;
  std::vector<std::string> lines;
};

/// Writes a line to the parent.
using WriteLine = std::function<void(const std::string&)>;
using Job = std::function<void(const WriteLine& write)>;

/// Runs the jobs, `at_once` at a time, and calls `take` with the number of each that has ended. A
/// job that writes no line for `timeout` seconds is ended.
void run_forked(const std::vector<Job>& jobs, int at_once, double timeout,
                const std::function<void(size_t job, JobResult result)>& take);

}  // namespace tenon::conformance
