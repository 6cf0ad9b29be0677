// tools/tune/: the search for the tuning parameters with which a device is fastest.
//
// Coordinate descent: each parameter that the lowering of a program asks for is tried with values
// over its whole range while the others stay, twice in all, because the best tile depth depends on
// the best tile width. A value is taken if it makes the programs that ask for it faster in
// geometric mean, each of three more times beside the best values so far.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "hlo/lower/tuning_parameters.h"

namespace tenon::tools {

/// Parameters by name; those that are absent keep the device's own values.
using Tuning = std::map<std::string, int64_t>;

/// The seconds of a program that cannot be measured.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// How fast programs are with given parameters: a device, or in tests a function.
class TuningTarget {
 public:
  TuningTarget() = default;
  TuningTarget(const TuningTarget&) = delete;
  TuningTarget& operator=(const TuningTarget&) = delete;
  virtual ~TuningTarget() = default;

  virtual size_t program_count() const = 0;
  /// Seconds of an execution; kNever if the parameters cannot be used (declined, too slow to
  /// measure, wrong results). `again` measures even if an earlier figure is known. Errors: the
  /// device is lost.
  virtual Result<double> seconds(size_t program, const Tuning& tuning, bool again) = 0;
  /// The parameters that the lowering of the program asked for, in any measurement so far.
  virtual const std::set<std::string>& asked(size_t program) const = 0;
  /// Whether the time of the search is over.
  virtual bool is_over() const = 0;
};

/// A step of the search, for progress and for results that are kept although the search is ended.
struct TuningStep {
  std::string_view parameter;  ///< Searched now.
  size_t done = 0;             ///< Parameters searched, of `count`.
  size_t count = 0;
  const Tuning& best;
  bool improved = false;  ///< `best` has just changed.
};

struct TuningResult {
  Tuning best;
  std::vector<double> before;  ///< Seconds by program, with the device's own values,
  std::vector<double> after;   ///< and with `best`, measured beside one another at the end.
  bool is_complete = false;    ///< False if the time was over before the last parameter.
};

/// Searches for the fastest values of `parameters`, beginning with the device's own. Errors: those
/// of `target`.
Result<TuningResult> search(TuningTarget& target,
                            std::span<const hlo::lower::TuningParameterInfo> parameters,
                            const std::function<void(const TuningStep&)>& progress);

/// The values to try: 0 and 1 of a flag; else 1, 2, 3, 4, 6, 8, 12 … up to the largest legal one.
std::vector<int64_t> values_to_try(const hlo::lower::TuningParameterInfo& parameter);

/// exp of the mean of log(after / before) over `programs`; kNever if any of both is.
double mean_ratio(std::span<const double> before, std::span<const double> after);

}  // namespace tenon::tools
