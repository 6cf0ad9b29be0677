// Arithmetic on kernel indices.
#pragma once

#include "core/kernel/ir/builder.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo::lower {

using K = kernel::OpCode;
using kernel::ValueId;
using kernel::Values;

/// The row-major position of `index` in an array of `dims`.
ValueId linear_index(kernel::Builder& b, const Values& index, const Dims& dims);
/// The index at row-major position `linear`, which must be within the array.
Values delinearize(kernel::Builder& b, ValueId linear, const Dims& dims);
/// The index, in an array of shape `to`, of the element that has index `index` in shape `from`.
Values reshaped_index(kernel::Builder& b, const Values& index, const Dims& from, const Dims& to);
/// An integer value clamped to [0, limit], as an index.
ValueId clamped_index(kernel::Builder& b, ValueId value, int64_t limit);
/// 0 <= index < size.
ValueId in_bounds(kernel::Builder& b, ValueId index, int64_t size);

}  // namespace tenon::hlo::lower
