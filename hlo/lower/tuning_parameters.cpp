#include "hlo/lower/tuning_parameters.h"

#include <algorithm>

#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {

TuningParameters TuningParameters::random(uint64_t seed) {
  TuningParameters tuning;
  tuning.random_.emplace(seed);
  return tuning;
}

int64_t TuningParameters::choose(const TuningParameterInfo& parameter, int64_t preferred) {
  if (asked_ != nullptr) asked_->emplace(parameter.name);
  const auto found = values_.find(parameter.name);
  int64_t chosen = preferred;
  if (found != values_.end()) {
    chosen = found->second;
  } else {
    const auto stated = preferred_.find(parameter.name);
    if (stated != preferred_.end()) chosen = stated->second;
    if (random_) {
      std::vector<int64_t> all = {chosen};
      if (parameter.is_flag()) all.insert(all.end(), {0, 1});
      for (const int64_t value : parameter.drawn) {
        if (value != 0) all.push_back(value);
      }
      chosen = random_->of(all);
    }
  }
  return std::clamp<int64_t>(chosen, parameter.is_flag() ? 0 : 1, parameter.most);
}

std::optional<bool> TuningParameters::use(std::string_view schedule) {
  if (asked_ != nullptr) asked_->emplace(schedule);
  const auto found = values_.find(schedule);
  if (found != values_.end()) return found->second != 0;
  if (!random_) return std::nullopt;
  const int64_t drawn = random_->below(3);
  return drawn == 2 ? std::nullopt : std::optional(drawn == 1);
}

std::vector<TuningParameterInfo> all_tuning_parameters() {
  std::vector<TuningParameterInfo> all = {
      parameters::kLanes,        parameters::kRowScratch,         parameters::kFftPoints,
      parameters::kFftLines,     parameters::kSelectionGroups,    parameters::kSortBlock,
      parameters::kSortCounts,   parameters::kScatterAtomic,      parameters::kScatterUnique,
      parameters::kInPlace,      parameters::kControlInWorkgroup, parameters::kScatterCounts,
      parameters::kScatterCopies};
  for (const Schedule& schedule : schedules()) {
    all.push_back({schedule.name, "whether the schedule is used if it fits, or never"});
    all.insert(all.end(), schedule.parameters.begin(), schedule.parameters.end());
  }
  return all;
}

Status check(std::span<const TuningEntry> entries) {
  const std::vector<TuningParameterInfo> all = all_tuning_parameters();
  for (const auto& [name, value] : entries) {
    const auto found = std::ranges::find(all, name, &TuningParameterInfo::name);
    if (found == all.end()) {
      return Status(
          not_found("there is no tuning parameter '{}' (`tenon schedules` lists them)", name));
    }
    const int64_t least = found->is_flag() ? 0 : 1;
    if (value < least || value > found->most) {
      return Status(invalid_argument("tuning parameter {} is {}, expected {} to {}", name, value,
                                     least, found->most));
    }
  }
  return {};
}

}  // namespace tenon::hlo::lower
