// Whole loops and branches over small arrays as one kernel of one workgroup: no launch and no
// answer to the host a trip.
#pragma once

#include "hlo/lower/kernel_maker.h"

namespace tenon::hlo::lower {

/// A kernel for `op`, of ControlForm::kWorkgroup. /// The kernel: arrays of the state in scratch,
/// numbers in registers, each op a lanes loop.
Status lower_in_workgroup(LoweredOp& lowered, const Instruction& op);

}  // namespace tenon::hlo::lower
