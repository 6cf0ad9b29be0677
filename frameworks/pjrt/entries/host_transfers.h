// Transfers between a running program and its caller: StableHLO's send and recv with the host.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::pjrt {

/// Turns sends to the host and receives from it into calls of two functions of the host,
/// which call the callbacks of an execution (ExecutionData) by channel. Errors:
/// kUnimplemented for one of several arrays.
Status replace_host_transfers(hlo::Module& module);

}  // namespace tenon::pjrt
