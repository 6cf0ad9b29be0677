#include "core/types/shape.h"

#include <algorithm>

namespace tenon {

bool Shape::is_static() const {
  return std::none_of(dims_.begin(), dims_.end(), [](int64_t dim) { return dim == kDynamic; });
}

int64_t Shape::element_count() const { return tenon::element_count(dims_); }

int64_t Shape::byte_size() const {
  return element_count() * static_cast<int64_t>(storage_bytes(element_type_));
}

std::string Shape::to_string() const {
  std::string text = fmt::format("{}[", name_of(element_type_));
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (i != 0) text += ',';
    if (dims_[i] != kDynamic) {
      text += fmt::format("{}", dims_[i]);
    } else {
      text += '?';
      if (!bounds_.empty() && bounds_[i] != kDynamic) text += fmt::format("<={}", bounds_[i]);
    }
  }
  return text + "]";
}

int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

bool contains(std::span<const int64_t> list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Dims complement(int64_t rank, std::span<const int64_t> list) {
  Dims rest;
  for (int64_t d = 0; d < rank; ++d) {
    if (!contains(list, d)) rest.push_back(d);
  }
  return rest;
}

Result<int64_t> checked_element_count(const Dims& dims, int64_t unit) {
  int64_t count = unit;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return invalid_argument("dimension size {} is negative or not known", dim);
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, dim, &count)) {
      return invalid_argument("a shape of dimensions [{}] has more elements than can be counted",
                              dims_to_string(dims));
    }
  }
  return empty ? 0 : count / unit;
}

Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Dims row_major_byte_strides(const Shape& shape) {
  Dims strides = row_major_strides(shape.dims());
  for (int64_t& stride : strides) {
    stride *= static_cast<int64_t>(storage_bytes(shape.element_type()));
  }
  return strides;
}

std::string dims_to_string(const Dims& dims, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) text += separator;
    text += dims[i] == kDynamic ? "?" : fmt::format("{}", dims[i]);
  }
  return text;
}

}  // namespace tenon
