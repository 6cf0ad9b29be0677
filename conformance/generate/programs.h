// Small programs that reach each way through a backend: one kernel and several, constants, loops
// and branches, donation, results by the dozen, every width of element.
#pragma once

#include <string_view>
#include <vector>

namespace tenon::conformance {

struct SmallProgram {
  std::string_view name;
  std::string_view text;  ///< StableHLO.
  bool computes = true;   ///< Else it only moves arrays, and the device runs no step.
};

/// Twenty of them, always in this order.
const std::vector<SmallProgram>& small_programs();

}  // namespace tenon::conformance
