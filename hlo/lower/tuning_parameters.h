// TuningParameters: the choices of a lowering as named integers. A bad choice makes a kernel slow
// or declined, but its results stay correct.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/random.h"

namespace tenon::hlo::lower {

class TuningParameters {
 public:
  TuningParameters() = default;
  /// Draws every choice that is not set, by the seed: for differential tests.
  static TuningParameters random(uint64_t seed);

  void set(std::string name, int64_t value) { values_[std::move(name)] = value; }
  /// The value that was set for `name`; else one of `preferred` and `others` if the parameters are
  /// random, else `preferred`.
  int64_t choose(std::string_view name, int64_t preferred, std::initializer_list<int64_t> others);
  /// The same for a size, clamped to 1 … `most`.
  int64_t choose_size(std::string_view name, int64_t preferred,
                      std::initializer_list<int64_t> others, int64_t most = 1024);

 private:
  std::map<std::string, int64_t, std::less<>> values_;
  std::optional<Random> random_;  // Only in random parameters.
};

}  // namespace tenon::hlo::lower
