// How much an op asks of the evaluator.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The products, or window positions, for each element of the result.
double work_of_element(const Instruction& op);

/// The scalar operations of one evaluation, as an estimate: elements read and written, windows,
/// products, comparisons. The computations of regions count when they run.
double work_of(const Instruction& op);

}  // namespace tenon::hlo
