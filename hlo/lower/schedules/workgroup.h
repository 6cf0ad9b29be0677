// Whole loops and branches over small arrays, and over long ones that each turn changes a small
// part of, as one kernel of one workgroup: no launch and no answer to the host a trip.
#pragma once

#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/control_form.h"

namespace tenon::hlo::lower {

/// A kernel for `op` in this form: arrays of the state in scratch, numbers in registers, each op a
/// lanes loop. Arrays that lie where results do begin as what the state does.
Status lower_in_workgroup(LoweredOp& lowered, const Instruction& op, const WorkgroupForm& form,
                          TuningParameters& tuning);

}  // namespace tenon::hlo::lower
