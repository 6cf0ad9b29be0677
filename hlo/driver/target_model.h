// The target as fusion and lowering see it: costs, and the vendor's tuning parameters.
#pragma once

#include <string>
#include <vector>

#include "core/backend/target.h"
#include "core/runtime/executable.h"
#include "hlo/lower/lower_op.h"

namespace tenon::hlo {

/// The cost model with the constants that the target states (compute units, bytes and operations
/// per second, time of a launch, lanes, private memory, parameters of a kernel); the others are
/// defaults.
lower::CostModel cost_model_of(const backend::TargetInfo& target);

/// The features for which kernels are legalised, unless the target accepts all kernels. Of
/// the math functions that the target states, those are among them that `native_math` allows or
/// that give the bits of the shared expansions.
kernel::TargetFeatures features_of(const backend::TargetInfo& target, bool native_math);

/// Sets the tuning parameters that the vendor states (the last entry for a name wins), except those
/// that the caller has set. Entries that this release does not know are ignored, because plug-ins
/// and releases have different ages; for each, a warning that names the target is returned.
std::vector<std::string> apply_tuning(const backend::TargetInfo& target,
                                      lower::TuningParameters& tuning);

/// OK, or an error of kResourceExhausted: an array of the Program, a packed constant, or the block
/// of temporaries with the workspace of calls is larger than the target's largest buffer.
Status check_sizes(const runtime::CompiledProgram& compiled, const backend::TargetInfo& target);

}  // namespace tenon::hlo
