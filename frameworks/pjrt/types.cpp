#include "frameworks/pjrt/types.h"

#include <algorithm>
#include <array>
#include <span>

namespace tenon::pjrt {
namespace {

// The order of a row-major array, for any sizes.
bool is_row_major(const PJRT_Buffer_MemoryLayout_Tiled& tiled) {
  for (size_t i = 0; i < tiled.minor_to_major_size; ++i) {
    if (tiled.minor_to_major[i] != static_cast<int64_t>(tiled.minor_to_major_size - 1 - i))
      return false;
  }
  return true;
}

Result<Dims> strides_of_tiled(const Shape& shape, const PJRT_Buffer_MemoryLayout_Tiled& tiled) {
  if (tiled.num_tiles != 0) return unimplemented("a layout with tiles; arrays lie dense");
  const auto rank = static_cast<size_t>(shape.rank());
  if (tiled.minor_to_major_size != rank) {
    // TensorFlow reshapes an array without telling the device.
    if (is_row_major(tiled)) return row_major_byte_strides(shape);
    return invalid_argument("a layout of {} dimensions for {}", tiled.minor_to_major_size,
                            shape.to_string());
  }
  Dims strides(rank, 0);
  auto stride = static_cast<int64_t>(storage_bytes(shape.element_type()));
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = tiled.minor_to_major[i];
    if (dim < 0 || dim >= shape.rank() || seen[static_cast<size_t>(dim)]) {
      return invalid_argument("a layout for {} whose order is not a permutation",
                              shape.to_string());
    }
    seen[static_cast<size_t>(dim)] = true;
    strides[static_cast<size_t>(dim)] = stride;
    stride *= std::max<int64_t>(shape.dim(static_cast<size_t>(dim)), 1);
  }
  return strides;
}

}  // namespace

Result<Shape> shape_of(PJRT_Buffer_Type type, const int64_t* dims, size_t rank) {
  TENON_ASSIGN(const ElementType element, element_type_of(type));
  Shape shape(element, rank == 0 ? Dims() : Dims(dims, dims + rank));
  TENON_TRY(checked_element_count(shape.dims(), static_cast<int64_t>(storage_bytes(element))));
  return shape;
}

Dims row_major_order(size_t rank) {
  Dims order;
  for (size_t d = rank; d-- > 0;) order.push_back(static_cast<int64_t>(d));
  return order;
}

const int64_t* shared_row_major_order(size_t rank) {
  static constexpr size_t kMost = 16;
  static constexpr auto kDescending = [] {
    std::array<int64_t, kMost> order = {};
    for (size_t i = 0; i < kMost; ++i) order[i] = static_cast<int64_t>(kMost - 1 - i);
    return order;
  }();
  return rank <= kMost ? kDescending.data() + (kMost - rank) : nullptr;
}

Result<Dims> host_strides(const Shape& shape, const PJRT_Buffer_MemoryLayout* layout) {
  if (layout == nullptr) return row_major_byte_strides(shape);
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    return strides_of_tiled(shape, layout->tiled);
  }
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Strides) {
    return invalid_argument("layout type {}", static_cast<int>(layout->type));
  }
  const PJRT_Buffer_MemoryLayout_Strides& strides = layout->strides;
  if (strides.num_byte_strides != shape.dims().size()) {
    return invalid_argument("{} strides for {}", strides.num_byte_strides, shape.to_string());
  }
  return Dims(strides.byte_strides, strides.byte_strides + strides.num_byte_strides);
}

Status check_device_layout(const Shape& shape, const PJRT_Buffer_MemoryLayout* layout) {
  TENON_ASSIGN(const Dims strides, host_strides(shape, layout));
  if (shape.byte_size() == 0) return {};  // There are no elements.
  const Dims dense = row_major_byte_strides(shape);
  for (size_t d = 0; d < dense.size(); ++d) {
    if (shape.dim(d) <= 1 || strides[d] == dense[d]) continue;
    return unimplemented("{} on a device in a layout other than row-major", shape.to_string());
  }
  return {};
}

void normalize(ElementType type, std::span<std::byte> bytes) {
  if (is_pred(type)) {
    for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
    return;
  }
  const int unused = 8 - bit_width(type);
  if (unused <= 0) return;
  for (std::byte& byte : bytes) {
    const auto low = static_cast<uint8_t>(std::to_integer<uint8_t>(byte) << unused);
    byte = is_signed_integer(type) ? static_cast<std::byte>(static_cast<int8_t>(low) >> unused)
                                   : static_cast<std::byte>(low >> unused);
  }
}

}  // namespace tenon::pjrt
