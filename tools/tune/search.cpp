#include "tools/tune/search.h"

#include <algorithm>
#include <cmath>

namespace tenon::tools {
namespace {

// Less is noise.
constexpr double kGain = 0.97;
// A value with which one program takes this many times as long is not tried with the others.
constexpr double kHopeless = 1.5;
constexpr size_t kRounds = 2;
// A gain must show each of these times, since machines are noisy.
constexpr int kConfirmations = 3;

class CoordinateDescent {
 public:
  CoordinateDescent(TuningTarget& target,
                    std::span<const hlo::lower::TuningParameterInfo> parameters,
                    const std::function<void(const TuningStep&)>& progress)
      : target_(target), parameters_(parameters), progress_(progress) {}

  Result<TuningResult> run() {
    TENON_ASSIGN(best_seconds_, measure_all({}));
    result_.is_complete = true;
    for (size_t round = 0; round < kRounds; ++round) {
      bool improved = false;
      for (size_t i = 0; i < parameters_.size(); ++i) {
        if (target_.is_over()) {
          result_.is_complete = false;
          return finish();
        }
        report(parameters_[i].name, round * parameters_.size() + i, false);
        TENON_ASSIGN(const bool better, try_values(parameters_[i]));
        if (better) report(parameters_[i].name, round * parameters_.size() + i, true);
        improved |= better;
      }
      if (!improved) break;
    }
    return finish();
  }

 private:
  void report(std::string_view parameter, size_t done, bool improved) const {
    progress_({parameter, done, kRounds * parameters_.size(), result_.best, improved});
  }

  Result<std::vector<double>> measure_all(const Tuning& tuning) {
    std::vector<double> seconds(target_.program_count());
    for (size_t i = 0; i < seconds.size(); ++i) {
      TENON_ASSIGN(seconds[i], target_.seconds(i, tuning, true));
    }
    return seconds;
  }

  std::vector<size_t> programs_of(std::string_view parameter) const {
    std::vector<size_t> programs;
    for (size_t i = 0; i < target_.program_count(); ++i) {
      // A program that the device cannot run shows nothing.
      if (best_seconds_[i] < kNever && target_.asked(i).contains(std::string(parameter))) {
        programs.push_back(i);
      }
    }
    return programs;
  }

  // The mean ratio of the seconds with `tuning` to the best ones; infinity as soon as one program
  // is hopeless.
  Result<double> ratio_to_best(const Tuning& tuning, const std::vector<size_t>& programs) {
    std::vector<double> before;
    std::vector<double> after;
    for (const size_t i : programs) {
      TENON_ASSIGN(const double seconds, target_.seconds(i, tuning, false));
      if (seconds > kHopeless * best_seconds_[i]) return kNever;
      before.push_back(best_seconds_[i]);
      after.push_back(seconds);
    }
    return mean_ratio(before, after);
  }

  // Measures both again, in turn, and takes `tuning` if it is faster each time.
  Result<bool> take_if_faster(const Tuning& tuning, const std::vector<size_t>& programs) {
    std::vector<double> before(programs.size());
    std::vector<double> after(programs.size());
    bool faster = true;
    for (int time = 0; time < kConfirmations && faster; ++time) {
      for (size_t k = 0; k < programs.size(); ++k) {
        TENON_ASSIGN(before[k], target_.seconds(programs[k], result_.best, true));
        TENON_ASSIGN(after[k], target_.seconds(programs[k], tuning, true));
      }
      faster = mean_ratio(before, after) <= kGain;
    }
    const std::vector<double>& now = faster ? after : before;
    for (size_t k = 0; k < programs.size(); ++k) {
      // The best values ran before; that they do not this time says nothing about them.
      if (now[k] < kNever) best_seconds_[programs[k]] = now[k];
    }
    if (faster) result_.best = tuning;
    return faster;
  }

  Result<bool> try_values(const hlo::lower::TuningParameterInfo& parameter) {
    const std::vector<size_t> programs = programs_of(parameter.name);
    if (programs.empty()) return false;
    std::vector<std::pair<double, Tuning>> faster;
    for (const int64_t value : values_to_try(parameter)) {
      if (target_.is_over()) break;
      Tuning tuning = result_.best;
      tuning[std::string(parameter.name)] = value;
      if (tuning == result_.best) continue;
      TENON_ASSIGN(const double ratio, ratio_to_best(tuning, programs));
      if (ratio <= kGain) faster.emplace_back(ratio, std::move(tuning));
    }
    // One lucky measurement does not hide the others.
    std::ranges::stable_sort(faster, {}, &std::pair<double, Tuning>::first);
    for (const auto& [ratio, tuning] : faster) {
      TENON_ASSIGN(const bool taken, take_if_faster(tuning, programs));
      if (taken) return true;
    }
    return false;
  }

  Result<TuningResult> finish() {
    TENON_ASSIGN(result_.before, measure_all({}));
    TENON_ASSIGN(result_.after, measure_all(result_.best));
    return std::move(result_);
  }

  TuningTarget& target_;
  const std::span<const hlo::lower::TuningParameterInfo> parameters_;
  const std::function<void(const TuningStep&)>& progress_;
  TuningResult result_;
  std::vector<double> best_seconds_;
};

}  // namespace

Result<TuningResult> search(TuningTarget& target,
                            std::span<const hlo::lower::TuningParameterInfo> parameters,
                            const std::function<void(const TuningStep&)>& progress) {
  return CoordinateDescent(target, parameters, progress).run();
}

std::vector<int64_t> values_to_try(const hlo::lower::TuningParameterInfo& parameter) {
  if (parameter.is_flag()) return {0, 1};
  std::vector<int64_t> values;
  for (int64_t power = 1; power <= parameter.most; power *= 2) {
    values.push_back(power);
    const int64_t between = power / 2 * 3;
    if (power > 1 && between <= parameter.most) values.push_back(between);
  }
  return values;
}

double mean_ratio(std::span<const double> before, std::span<const double> after) {
  double sum = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (!(before[i] < kNever && after[i] < kNever)) return kNever;
    sum += std::log(after[i] / before[i]);
  }
  return before.empty() ? 1 : std::exp(sum / static_cast<double>(before.size()));
}

}  // namespace tenon::tools
