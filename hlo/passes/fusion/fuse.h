// hlo/passes/fusion/: fuses ops into kernels-to-be.
//
// Fusion: instructions put into one that becomes one kernel or library call.
//
// fuse() makes a fusion; passes decide what to fuse.
#pragma once

#include <string>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Moves `ops`, instructions of one computation, into the body of a new fusion, which takes their
/// place. Its operands are the values that they use, its results those that others use; constants
/// are copied into it. Instructions in between that need a result move behind it and, so that
/// effects stay in order, those with an effect after one of these. Errors: kInvalidArgument if
/// there is nothing but constants, if not all are of one computation, if one has an effect, or if
/// something outside stands between two of them (uses one and is used by the other).
Result<Instruction*> fuse(const std::vector<Instruction*>& ops, std::string kind = "");

}  // namespace tenon::hlo
