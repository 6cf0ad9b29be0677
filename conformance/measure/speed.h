// Whether the speed of a device is sane: no class of ops far behind the device's own elementwise
// rate, no cost that grows faster than the work. Times come from a function, so that the rules are
// the same for a device and for a clock that a test invents.
//
// Thread-safety: values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::conformance {

/// A class of ops as programs of a size `n`.
struct SpeedClass {
  std::string name;    ///< "sort/f32"
  int64_t first = 0;   ///< The least size.
  int64_t factor = 4;  ///< By which `n` grows where the elements become four times as many.
  std::function<std::string(int64_t n)> program;
  /// The work of a plain algorithm, in steps of one elementwise operation on one element: flops, or
  /// elements moved, or n log2 n for a sort.
  double (*steps)(double n) = nullptr;
  /// Whether its rate is judged: not where steps follow each other, each a launch of its own.
  bool has_rate = true;
};

/// The yardstick is a multiplication and an addition of f32, the first class.
const std::vector<SpeedClass>& speed_classes();

/// One run of a program.
struct TimedRun {
  double seconds = 0;
  double bytes = 0;  ///< Arguments and results.
};
/// Runs the program of size `n` of a class; a new run each time. Errors: those of the device.
using RunOfSize = std::function<Result<TimedRun>(const SpeedClass& one, int64_t n)>;

struct SpeedLimits {
  /// A class may be this many times slower than elementwise steps, plus a launch.
  double slower = 100;
  /// The time of 16 times as many elements may grow by this factor more than the work, and than the
  /// time of an elementwise step in arrays of as many bytes.
  double growth = 4;
  /// Sizes grow until a run takes so long, or has so many bytes.
  double run_seconds = 0.01;
  double most_bytes = 256 << 20;
  /// A size that would take longer, were the cost quadratic, is not run.
  double longest_seconds = 10;
  int runs = 3;   ///< For a size: the least time counts.
  int tries = 3;  ///< A class that exceeds a limit each time fails.
};

/// Empty, or "52 times slower than …": judged `limits.tries` times before it is said, since
/// the machine may be busy.
Result<std::optional<std::string>> judge_rate(const SpeedClass& one, const RunOfSize& run,
                                              const SpeedLimits& limits = {});
/// Empty, or "16 times as many elements take 250 times as long, …". Three sizes: n, 4 n, 16 n.
Result<std::optional<std::string>> judge_growth(const SpeedClass& one, const RunOfSize& run,
                                                const SpeedLimits& limits = {});

}  // namespace tenon::conformance
