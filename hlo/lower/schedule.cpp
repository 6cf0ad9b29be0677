#include "hlo/lower/schedule.h"

#include <vector>

namespace tenon::hlo::lower {

Schedule Schedule::random(uint64_t seed) {
  Schedule schedule;
  schedule.random_.emplace(seed);
  return schedule;
}

int64_t Schedule::choose(std::string_view name, int64_t preferred,
                         std::initializer_list<int64_t> others) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  if (!random_) return preferred;
  std::vector<int64_t> all = {preferred};
  all.insert(all.end(), others);
  return random_->of(all);
}

}  // namespace tenon::hlo::lower
