// hlo/passes/fusion/: fuses ops into kernels-to-be.
//
// A fusion is an instruction with others in its body; it becomes one kernel or library call.
//
// fuse() makes a fusion; passes decide what to fuse (groups.h).
#pragma once

#include <string>
#include <vector>

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// Moves `ops`, instructions of one computation, into the body of a new fusion, which replaces
/// them. Its operands are the values that they use, its results those that other instructions use;
/// constants are copied into it. Instructions in between that need a result move after it and, so
/// that effects keep their order, so do the instructions with an effect after one of these. Errors:
/// kInvalidArgument if there are only constants, if the ops belong to several computations, if one
/// has an effect, or if an instruction outside uses one of them and is used by another.
Result<Instruction*> fuse(const std::vector<Instruction*>& ops, std::string kind = "");

}  // namespace tenon::hlo
