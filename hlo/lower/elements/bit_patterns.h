// The bits of a number of any width as an integer.
#pragma once

#include "core/kernel/ir/builder.h"

namespace tenon::hlo::lower {

/// The unsigned integer type that holds the bits of `type`: the one of its width, or u8 if there is
/// no such type.
ElementType bits_type(ElementType type);
/// The bits of a number, 0 above its width.
kernel::ValueId bits_of(kernel::Builder& b, kernel::ValueId x);
/// The number of those bits, lowest first; bits above the width of `type` are ignored.
kernel::ValueId from_bits(kernel::Builder& b, kernel::ValueId bits, ElementType type);

}  // namespace tenon::hlo::lower
