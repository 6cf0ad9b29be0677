// The target as fusion and lowering see it: costs, and parameters that its maker sets.
#pragma once

#include "core/backend/target.h"
#include "hlo/lower/lower_op.h"

namespace tenon::hlo {

/// The constants of the cost model that the target states (compute units, bytes and operations a
/// second, time of a launch, lanes, private memory, parameters of a kernel); the others are
/// defaults.
lower::CostModel cost_model_of(const backend::TargetInfo& target);

/// Sets the parameters that the device's maker states, but for those that the caller has set.
/// Errors: an unknown parameter, or a value that it cannot have; the error names the target.
Status apply_tuning(const backend::TargetInfo& target, lower::TuningParameters& tuning);

/// OK, or an error of kResourceExhausted: an array of the Program, or its block of temporaries, is
/// larger than the target's largest buffer.
Status check_sizes(const program::Program& program, const backend::TargetInfo& target);

}  // namespace tenon::hlo
