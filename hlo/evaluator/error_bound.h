// Error bounds of results of ops whose accuracy depends on the order of combination.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo::error_bound {

/// The number of roundings in one element of a result, in half ULP of the sum of the terms'
/// magnitudes; 0 if every order gives the same bits. `.terms` of the op table names such a
/// function.
using Rule = double(const Instruction& op);

/// Sums of products; of elements of the operand.
Rule contraction, elements;
/// Combinations by a region.
Rule reduce, reduce_window, scan;
/// Combinations in an order that the op states: exact.
Rule in_stated_order;

}  // namespace tenon::hlo::error_bound
