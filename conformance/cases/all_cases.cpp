#include "conformance/cases/case.h"

namespace tenon::conformance {

const CaseList& case_list() {
  static const CaseList all = [] {
    CaseList list;
    add_elementwise_cases(list);
    add_movement_cases(list);
    add_reduction_cases(list);
    add_contraction_cases(list);
    add_linear_algebra_cases(list);
    add_control_flow_cases(list);
    add_broadcasting_cases(list);
    add_normalization_cases(list);
    add_random_bits_cases(list);
    add_quantized_cases(list);
    add_dynamic_cases(list);
    add_pattern_cases(list);
    add_random_cases(list);
    add_model_cases(list);
    add_determinism_cases(list);
    add_seam_cases(list);
    add_abi_cases(list);
    add_lifetime_cases(list);
    add_kernel_cases(list);
    add_runtime_cases(list);
    add_speed_cases(list);
    add_large_cases(list);
    add_left_out(list);
    return list;
  }();
  return all;
}

}  // namespace tenon::conformance
