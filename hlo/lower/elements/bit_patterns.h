// The bits of a number as an integer, whatever its width.
#pragma once

#include "core/kernel/ir/builder.h"

namespace tenon::hlo::lower {

/// The unsigned integer type that holds the bits of `type`: of its width, u8 where there is none.
ElementType bits_type(ElementType type);
/// The bits of a number, 0 above its width.
kernel::ValueId bits_of(kernel::Builder& b, kernel::ValueId x);
/// The number of those bits, lowest first; what lies above the width of `type` does not count.
kernel::ValueId from_bits(kernel::Builder& b, kernel::ValueId bits, ElementType type);

}  // namespace tenon::hlo::lower
