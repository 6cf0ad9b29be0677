// Conversion between a number of any width and its bits as an integer.
#pragma once

#include "core/kernel/ir/builder.h"

namespace tenon::hlo::lower {

/// The unsigned integer type for the bits of `type`: the type of that width, or u8 if there is
/// none.
ElementType bits_type(ElementType type);
/// The bits of a number; 0 above its width.
kernel::ValueId bits_of(kernel::Builder& b, kernel::ValueId x);
/// The number with these bits, lowest first; bits above the width of `type` are ignored.
kernel::ValueId from_bits(kernel::Builder& b, kernel::ValueId bits, ElementType type);

}  // namespace tenon::hlo::lower
