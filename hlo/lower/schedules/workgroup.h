// Whole loops and branches over small arrays, and over long ones of which each iteration changes a
// small part, as one kernel of one workgroup: an iteration needs no launch and no round trip to the
// host.
#pragma once

#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/control_form.h"

namespace tenon::hlo::lower {

/// Makes a kernel for `op` in this form: arrays of the state in scratch, numbers in registers, each
/// op a lanes loop. Arrays in the memory of results are initialised with the initial state.
Status lower_in_workgroup(LoweredOp& lowered, const Instruction& op, const WorkgroupForm& form,
                          TuningParameters& tuning);

}  // namespace tenon::hlo::lower
