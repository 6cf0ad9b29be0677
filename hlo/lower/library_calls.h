// Ops as library calls: what a backend may take whole instead of kernels.
#pragma once

#include <optional>

#include "core/program/library_call.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

/// The call on the op's operands that gives its results, or nothing: an op that is none, one whose
/// region is not one that the calls name (a comparator that is not LT or GT of one pair of
/// arguments, a reduction that is no prefix scan), one without elements, or one of a type that
/// lowering treats in its own way (products of operands of different types).
std::optional<program::LibraryCall> library_call_of(const Instruction& op);

/// The attributes of a convolution, those that are absent too.
program::Convolution convolution_of(const Instruction& op);

}  // namespace tenon::hlo::lower
