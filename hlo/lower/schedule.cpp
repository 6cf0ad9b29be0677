#include "hlo/lower/schedule.h"

#include <vector>

namespace tenon::hlo::lower {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t next(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

Schedule Schedule::random(uint64_t seed) {
  Schedule schedule;
  schedule.state_ = seed * 2 + 1;
  return schedule;
}

int64_t Schedule::choose(std::string_view name, int64_t preferred,
                         std::initializer_list<int64_t> others) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  if (state_ == 0) return preferred;
  std::vector<int64_t> all = {preferred};
  all.insert(all.end(), others);
  return all[next(state_) % all.size()];
}

}  // namespace tenon::hlo::lower
