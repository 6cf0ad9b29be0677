// The target as fusion and lowering see it: costs, and parameters that its maker sets.
#pragma once

#include <string>
#include <vector>

#include "core/backend/target.h"
#include "core/runtime/executable.h"
#include "hlo/lower/lower_op.h"

namespace tenon::hlo {

/// The constants of the cost model that the target states (compute units, bytes and operations a
/// second, time of a launch, lanes, private memory, parameters of a kernel); the others are
/// defaults.
lower::CostModel cost_model_of(const backend::TargetInfo& target);

/// Sets the parameters that the device's maker states, the last of a name, but for those that the
/// caller has set. What this release does not know is left out, since plug-ins outlive names: gives
/// a sentence for each, which names the target.
std::vector<std::string> apply_tuning(const backend::TargetInfo& target,
                                      lower::TuningParameters& tuning);

/// OK, or an error of kResourceExhausted: an array of the Program, a packed constant, or the block
/// of temporaries with the workspace of calls is larger than the target's largest buffer.
Status check_sizes(const runtime::CompiledProgram& compiled, const backend::TargetInfo& target);

}  // namespace tenon::hlo
