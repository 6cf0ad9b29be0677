// Programs that are run again and again on a device, with the time of each run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/client.h"

namespace tenon::conformance {

/// A program on a device, with its arguments there: moderate numbers of floats, the same again and
/// again; integers of 32 bits that count down to 0, each once, so that they are indices.
struct TimedProgram {
  std::shared_ptr<runtime::Executable> executable;
  std::vector<runtime::BufferPtr> arguments;
  double bytes = 0;  ///< Arguments and results, each once.

  /// Errors: those of import, of compilation, which may leave no step to the host (`strict`), and
  /// of memory.
  static Result<TimedProgram> load(const std::shared_ptr<runtime::Client>& client,
                                   const std::string& text, bool strict = false);
  /// Runs it once, and waits.
  Status run() const;
};

/// Seconds of one call, at least 1e-9: a clock may be too coarse. Errors: that of `work`.
Result<double> seconds_of(const std::function<Status()>& work);
/// Runs `work` `count` times; its first error, or the median of the seconds.
Result<double> median_seconds(int count, const std::function<Status()>& work);

}  // namespace tenon::conformance
