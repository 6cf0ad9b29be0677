#include "tools/tune/device_trials.h"

#include <algorithm>
#include <cmath>

#include "hlo/driver/run.h"

namespace tenon::tools {
namespace {

// Seconds of executions that one trial measures, and the limit of each.
constexpr double kMeasure = 0.2;
constexpr int64_t kMostExecutions = 200;
constexpr int64_t kTimeLimit = 30'000'000'000;
// Other tiles add in another order.
constexpr double kTolerance = 1e-3;

// The largest difference, relative to the largest expected element; infinity for other NaNs or
// infinities.
double difference(const Literal& result, const Literal& expected) {
  double scale = 0;
  double most = 0;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    const auto value = result.get_complex(i);
    const auto right = expected.get_complex(i);
    const double off = std::abs(value - right);
    if (std::isfinite(std::abs(right))) {
      if (!std::isfinite(off)) return kNever;
      scale = std::max(scale, std::abs(right));
      most = std::max(most, off);
    } else if (std::isfinite(std::abs(value))) {
      return kNever;
    }
  }
  return most == 0 ? 0 : scale == 0 ? kNever : most / scale;
}

double difference(const std::vector<Literal>& results, const std::vector<Literal>& expected) {
  double most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, difference(results[i], expected[i]));
  }
  return most;
}

// Without the first execution, in which a device may still prepare.
double median_of(const std::vector<double>& executions) {
  std::vector<double> values(executions.begin() + (executions.size() > 1 ? 1 : 0),
                             executions.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

DeviceTrials::DeviceTrials(std::shared_ptr<backend::Backend> backend, size_t device, Tuning own,
                           std::vector<TunedProgram> programs, Trials trials, Clock::time_point end)
    : backend_(std::move(backend)),
      device_(device),
      own_(std::move(own)),
      programs_(std::move(programs)),
      trials_(std::move(trials)),
      end_(end),
      asked_(programs_.size()),
      expected_(programs_.size()),
      why_not_(programs_.size()) {}

Result<std::unique_ptr<DeviceTrials>> DeviceTrials::open(std::shared_ptr<backend::Backend> backend,
                                                         size_t device, Tuning own,
                                                         std::vector<TunedProgram> programs,
                                                         Trials trials, Clock::time_point end) {
  std::unique_ptr<DeviceTrials> target(new DeviceTrials(
      std::move(backend), device, std::move(own), std::move(programs), std::move(trials), end));
  TENON_TRY(target->open_client());
  return target;
}

Status DeviceTrials::open_client() {
  runtime::ClientOptions options;
  options.devices = {device_};
  options.limits.time_limit = kTimeLimit;
  client_.reset();
  TENON_ASSIGN(client_, runtime::Client::open(backend_, options));
  return {};
}

Trial DeviceTrials::run(size_t program, const Tuning& tuning) {
  const TunedProgram& tuned = programs_[program];
  hlo::CompileOptions options;
  options.strict = true;
  options.lower.entry = tuned.entry;
  for (const auto& [name, value] : tuning) options.lower.tuning.set(name, value);
  options.lower.tuning.record_asked(&asked_[program]);
  hlo::RunTarget target;
  target.client = client_;
  target.repeat = kMostExecutions;
  target.most_seconds = kMeasure;
  hlo::RunInfo info;
  std::vector<hlo::CheckFailure> failures;
  int64_t count = 0;
  const auto results = hlo::run_on_device(target, *tuned.module, tuned.arguments,
                                          hlo::Checks(&failures, &count), options, &info);
  if (!results) {
    const Status& error = results.error();
    const bool is_lost = error.code() == ErrorCode::kUnavailable;
    return {.outcome = is_lost ? "lost" : "declined", .reason = error.message()};
  }
  if (info.steps.on_device() == 0) return {.outcome = "declined", .reason = "nothing to measure"};
  ++measured_;
  if (tuning.empty() && expected_[program].empty()) expected_[program] = *results;
  const double off = difference(*results, expected_[program]);
  if (off > kTolerance) {
    return {.outcome = "wrong results", .reason = fmt::format("off by {:.2g} of the largest", off)};
  }
  return {.outcome = "measured", .seconds = median_of(info.times.executions)};
}

Result<double> DeviceTrials::seconds(size_t program, const Tuning& tuning, bool again) {
  const TunedProgram& tuned = programs_[program];
  const std::string name = fmt::format("{} {}", tuned.name, tuned.digest);
  Tuning in_effect = tuning;
  in_effect.insert(own_.begin(), own_.end());
  std::optional<Trial> trial = trials_.find(name, in_effect);
  // A trial that took the process with it is not repeated.
  const bool is_known = trial && (!again || (trial->outcome == "lost" && !tuning.empty()));
  if (!is_known) {
    TENON_TRY(trials_.begin(name, in_effect));
    trial = run(program, tuning);
    TENON_TRY(trials_.end(name, in_effect, *trial));
    if (trial->outcome == "lost") {
      if (Status opened = open_client(); !opened.ok()) {
        return Error(std::move(opened).with_context(
            fmt::format("{} with {} lost the device ({}), and it does not open again", tuned.name,
                        to_string(tuning), trial->reason)));
      }
    }
    if (trial->outcome == "wrong results") {
      wrong_.push_back(fmt::format("{} with {}: {}", tuned.name, to_string(tuning), trial->reason));
    }
  }
  why_not_[program] = trial->reason;
  return trial->outcome == "measured" ? trial->seconds : kNever;
}

std::string to_string(const Tuning& tuning) {
  if (tuning.empty()) return "the device's own values";
  std::string text;
  for (const auto& [name, value] : tuning) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

}  // namespace tenon::tools
