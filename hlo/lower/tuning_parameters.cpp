#include "hlo/lower/tuning_parameters.h"

#include <algorithm>
#include <vector>

namespace tenon::hlo::lower {

TuningParameters TuningParameters::random(uint64_t seed) {
  TuningParameters tuning;
  tuning.random_.emplace(seed);
  return tuning;
}

int64_t TuningParameters::choose(std::string_view name, int64_t preferred,
                                 std::initializer_list<int64_t> others) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  if (!random_) return preferred;
  std::vector<int64_t> all = {preferred};
  all.insert(all.end(), others);
  return random_->of(all);
}

int64_t TuningParameters::choose_size(std::string_view name, int64_t preferred,
                                      std::initializer_list<int64_t> others, int64_t most) {
  return std::clamp<int64_t>(choose(name, preferred, others), 1, most);
}

}  // namespace tenon::hlo::lower
