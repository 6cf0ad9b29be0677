// Conversion between shapes and layouts of the PJRT C API and those of Tenon.
//
// On the host side every element takes whole bytes, as in a Literal: sub-byte integers one byte
// each, in its low bits.
#pragma once

#include <span>

#include "core/types/shape.h"
#include "frameworks/pjrt/c_api/element_types.h"
#include "frameworks/pjrt/c_api/pjrt_c_api.h"

namespace tenon::pjrt {

/// Errors: negative sizes, too large.
Result<Shape> shape_of(PJRT_Buffer_Type type, const int64_t* dims, size_t rank);

/// Byte strides of a host array in `layout` (null: row-major). Errors: tiles; an order of
/// dimensions that is not a permutation; a different rank.
Result<Dims> host_strides(const Shape& shape, const PJRT_Buffer_MemoryLayout* layout);

/// The dimensions of a dense row-major layout, from minor to major.
Dims row_major_order(size_t rank);
/// The same, for all arrays of a usual rank; null for higher ones.
const int64_t* shared_row_major_order(size_t rank);

/// OK if `layout` is null or dense and row-major, the layout on devices.
Status check_device_layout(const Shape& shape, const PJRT_Buffer_MemoryLayout* layout);

/// Normalises elements: sets the high bits of elements of less than a byte, which callers leave
/// undefined; a pred that is not 0 becomes 1.
void normalize(ElementType type, std::span<std::byte> bytes);

}  // namespace tenon::pjrt
