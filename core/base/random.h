// Pseudorandom numbers that are the same on every platform.
//
// Draw at most once per statement: the compiler chooses the order in which the arguments of a call
// are evaluated.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tenon {

/// The step and output of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014). Arguments that differ in any bit give bits that look unrelated.
constexpr uint64_t mix_bits(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    const uint64_t drawn = mix_bits(state_);
    state_ += 0x9E3779B97F4A7C15;
    return drawn;
  }
  /// A number in [0, count); count > 0.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(count));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  /// True with probability 1 / `count`.
  bool one_in(int64_t count) { return below(count) == 0; }
  /// A number in [0, 1).
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }

 private:
  uint64_t state_;
};

}  // namespace tenon
