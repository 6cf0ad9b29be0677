// Shape: an element type and dimension sizes.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/types/element_type.h"

namespace tenon {

/// The size of a dimension that is not known.
inline constexpr int64_t kDynamic = std::numeric_limits<int64_t>::min();

using Dims = std::vector<int64_t>;

/// The type of an array. A shape is static if every dimension is known. A dynamic shape may have an
/// upper bound per unknown dimension, and exists only until refinement (refine_shapes.h).
///
/// A value; copies are cheap enough for compile time, but not for per-element work.
class Shape {
 public:
  Shape() = default;
  Shape(ElementType element_type, Dims dims)
      : element_type_(element_type), dims_(std::move(dims)) {}
  Shape(ElementType element_type, Dims dims, Dims bounds)
      : element_type_(element_type), dims_(std::move(dims)), bounds_(std::move(bounds)) {}

  ElementType element_type() const { return element_type_; }
  const Dims& dims() const { return dims_; }
  int64_t dim(size_t axis) const { return dims_[axis]; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  bool is_scalar() const { return dims_.empty(); }

  /// Upper bounds, one per dimension (kDynamic: no bound), or empty if no dimension has one.
  const Dims& bounds() const { return bounds_; }
  bool is_static() const;
  bool is_dynamic_dim(size_t axis) const { return dims_[axis] == kDynamic; }

  /// Number of elements; the shape must be static. 1 for rank 0.
  int64_t element_count() const;
  /// element_count() * storage_bytes(element_type()).
  int64_t byte_size() const;

  /// "f32[2,?,<=4]" as in HLO text; "?<=4" marks a bounded dimension.
  std::string to_string() const;

  Shape with_element_type(ElementType type) const { return Shape(type, dims_, bounds_); }
  Shape with_dims(Dims dims) const { return Shape(element_type_, std::move(dims)); }

  bool operator==(const Shape&) const = default;

 private:
  ElementType element_type_ = ElementType::kPred;
  Dims dims_;
  Dims bounds_;
};

/// The product of `dims`, or an error if a dimension is negative or the product, times `unit`, does
/// not fit 63 bits. Must be called before allocating for any shape that comes from outside.
Result<int64_t> checked_element_count(const Dims& dims, int64_t unit = 1);

/// Distance in elements between neighbours along each axis of a dense row-major array.
Dims row_major_strides(const Dims& dims);
/// The same in bytes of storage.
Dims row_major_byte_strides(const Shape& shape);

/// The product of `dims`, which must be known and must not overflow; 1 for an empty list.
int64_t element_count(const Dims& dims);

bool contains(std::span<const int64_t> list, int64_t value);

/// The dimensions of an array of rank `rank` that are not in `list`, ascending.
Dims complement(int64_t rank, std::span<const int64_t> list);

/// A list such as "2x3x?" with `separator`; kDynamic prints as "?".
std::string dims_to_string(const Dims& dims, std::string_view separator = ",");

}  // namespace tenon
