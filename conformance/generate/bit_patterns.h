// Elements by their bit patterns.
#pragma once

#include <cstring>

#include "core/types/float_convert.h"
#include "core/types/literal.h"

namespace tenon::conformance {

/// Sets number `i` of an array, an element or, if it is complex, a part of one, to the low bits of
/// `pattern`. `part` is complex_part() of the array's type.
inline void set_pattern(Literal& array, ElementType part, int64_t i, uint64_t pattern) {
  if (is_float(part)) {
    const size_t bytes = storage_bytes(part);
    if (bit_width(part) < 64) pattern &= (uint64_t{1} << bit_width(part)) - 1;
    std::memcpy(array.mutable_data().data() + static_cast<size_t>(i) * bytes, &pattern, bytes);
  } else {
    array.set_integer(i, is_pred(part) ? static_cast<int64_t>(pattern & 1)
                                       : wrap_integer(part, static_cast<int64_t>(pattern)));
  }
}

}  // namespace tenon::conformance
