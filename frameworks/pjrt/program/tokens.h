// Tokens of a program's interface.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::pjrt {

/// Replaces tokens among the parameters and results of the entry by empty arrays, pred[0], which
/// are what JAX passes for them: an execution is given to its device after the earlier ones, so
/// they carry no order of their own.
void replace_tokens(hlo::Module& module);

}  // namespace tenon::pjrt
