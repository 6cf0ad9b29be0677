// Queries on constants that passes share.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The array that `value` is, if it is a constant, or null.
const DenseAttr* constant_of(Value value);
/// The element of `value` if it is a splat constant, or null.
const Literal* splat_of(Value value);
/// Whether `value` is a constant of real type, all of whose elements are exactly `number`: -0.0 is
/// not 0.0.
bool is_number(Value value, double number);
/// Whether it is a constant of integers or pred with all bits set.
bool is_all_ones(Value value);
/// A constant of `type` before `before`, with its location.
Value insert_constant(DenseAttr value, const Type& type, Instruction& before);
/// Whether arrays of this type are numbers whose sizes are known: neither quantized nor dynamic.
bool is_plain(const Type& type);

}  // namespace tenon::hlo
