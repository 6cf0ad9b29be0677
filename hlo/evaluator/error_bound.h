// How far results of an op whose accuracy depends on the order of combination may be off.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo::error_bound {

/// The roundings behind one element of a result, in half ULP of the sum of the terms' magnitudes;
/// 0 where any order gives the same bits. What `.terms` of the op table names.
using Rule = double(const Instruction& op);

/// Sums of products.
Rule contraction;
/// Combinations by a region.
Rule reduce, reduce_window;
/// Combinations in an order that the op states: exact.
Rule in_stated_order;

}  // namespace tenon::hlo::error_bound
