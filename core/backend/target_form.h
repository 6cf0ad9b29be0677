// The form of kernels that a target takes.
#pragma once

#include "core/backend/target.h"

namespace tenon::backend {

/// The features for which kernels are legalised: without scratch memory if the target has no bytes
/// of it.
inline kernel::TargetFeatures features_of(const TargetInfo& target) {
  kernel::TargetFeatures features = target.features;
  features.scratch = features.scratch && target.scratch_bytes > 0;
  return features;
}

}  // namespace tenon::backend
