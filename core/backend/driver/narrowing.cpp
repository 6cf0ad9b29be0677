#include "core/backend/driver/narrowing.h"

#include <algorithm>

#include "core/base/process/environment.h"

namespace tenon::backend {

namespace {

kernel::ElementTypes without_types(const kernel::ElementTypes& types,
                                   const kernel::ElementTypes& gone) {
  kernel::ElementTypes left;
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (types.contains(type) && !gone.contains(type)) left.insert(type);
  }
  return left;
}

}  // namespace

Status narrow(TargetInfo& target, const std::string& prefix) {
  const auto number = [&](std::string_view name, int64_t stated) {
    return environment_number(fmt::format("{}_{}", prefix, name).c_str(), stated);
  };
  const auto is_without = [&](std::string_view feature) {
    return environment_lists((prefix + "_WITHOUT").c_str(), feature);
  };
  SpaceInfo& space = target.spaces[0];
  TENON_ASSIGN(target.preferred_lanes, number("LANES", target.preferred_lanes));
  target.most_lanes = std::max(target.most_lanes, target.preferred_lanes);
  TENON_ASSIGN(target.scratch_bytes, number("SCRATCH", target.scratch_bytes));
  TENON_ASSIGN(space.bytes, number("MEMORY", space.bytes));
  TENON_ASSIGN(space.alignment, number("ALIGNMENT", space.alignment));
  TENON_ASSIGN(const int64_t queues, number("QUEUES", target.queues));
  target.queues = static_cast<uint32_t>(queues);

  kernel::TargetFeatures& features = target.features;
  if (is_without("f64")) features.computed = without_types(features.computed, {ElementType::kF64});
  if (is_without("s64")) {
    features.computed = without_types(features.computed, {ElementType::kS64, ElementType::kU64});
  }
  if (is_without("f16"))
    features.converted = without_types(features.converted, {ElementType::kF16});
  if (is_without("atomics")) features.atomics = {};
  if (is_without("svm")) {
    for (SpaceInfo& each : target.spaces) each.host_visible = each.host_writable = false;
  }
  return {};
}

}  // namespace tenon::backend
