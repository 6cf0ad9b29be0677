// Queries on constants that passes share.
#pragma once

#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The array if `value` is a constant, else null.
const DenseAttr* constant_of(Value value);
/// The element if `value` is a splat constant, else null.
const Literal* splat_of(Value value);
/// Whether `value` is a constant of real type whose elements are all exactly `number`: -0.0 is not
/// 0.0.
bool is_number(Value value, double number);
/// Whether it is a constant of integers or pred with all bits set.
bool is_all_ones(Value value);
/// Inserts a constant of `type` before `before`, with its location.
Value insert_constant(DenseAttr value, const Type& type, Instruction& before);
/// Whether arrays of this type are numbers with known sizes: neither quantized nor dynamic.
bool is_plain(const Type& type);

}  // namespace tenon::hlo
