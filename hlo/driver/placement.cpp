#include "hlo/driver/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::hlo {

std::string_view name_of(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::kNative:
      return "native";
    case PlacementKind::kKernel:
      return "kernel";
    case PlacementKind::kHost:
      break;
  }
  return "host";
}

std::string summary(const std::vector<Placement>& placement) {
  const auto count = [&](PlacementKind kind) {
    return std::ranges::count(placement, kind, &Placement::kind);
  };
  return fmt::format("native {}, kernel {}, host {} of {}", count(PlacementKind::kNative),
                     count(PlacementKind::kKernel), count(PlacementKind::kHost), placement.size());
}

const Placement* first_declined(const std::vector<Placement>& placement) {
  const auto found = std::ranges::find_if(placement, [](const Placement& each) {
    return each.kind == PlacementKind::kHost && !each.kernel.empty();
  });
  return found == placement.end() ? nullptr : &*found;
}

}  // namespace tenon::hlo
