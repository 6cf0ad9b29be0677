// Small programs that cover each path through a backend: one kernel and several, constants, loops
// and branches, donation, many results, every width of element.
#pragma once

#include <string_view>
#include <vector>

namespace tenon::conformance {

struct SmallProgram {
  std::string_view name;
  std::string_view text;  ///< StableHLO.
  bool computes = true;   ///< If false, it only moves arrays, and the device runs no step.
};

/// Twenty programs, always in this order.
const std::vector<SmallProgram>& small_programs();

}  // namespace tenon::conformance
