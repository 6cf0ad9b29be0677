// Cases of arrays of more than 2^31 elements. Their elements follow from their index, so that
// results are known without an evaluator; the device makes them, holds them between programs, so
// that no pass makes them disappear, and sends a few windows of them to the host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/interface/runtime_device.h"

namespace tenon::conformance {

/// Sizes of the arrays; tests take smaller ones.
struct LargeSizes {
  int64_t past = int64_t{1} << 31;  ///< The first index that 32 bits with a sign lack.
  int64_t count = past + 4099;      ///< The elements; a multiple of 3.
};

std::vector<std::string> large_case_names();
/// Runs the case of that name. Errors: the device's; a wrong element; kUnimplemented if the device
/// says that it has no room, or no indices of 64 bits.
Status check_large_case(std::string_view name, RuntimeDevice& device, LargeSizes sizes);

}  // namespace tenon::conformance
