#include "conformance/cases/case.h"

namespace tenon::conformance {

const std::vector<ConformanceCase>& all_cases() {
  static const std::vector<ConformanceCase> cases = [] {
    std::vector<ConformanceCase> list;
    add_elementwise_cases(list);
    add_movement_cases(list);
    add_reduction_cases(list);
    return list;
  }();
  return cases;
}

}  // namespace tenon::conformance
