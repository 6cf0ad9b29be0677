// Literal: a dense array value on the host.
#pragma once

#include <complex>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types/shape.h"

namespace tenon {

/// A dense, row-major array with copy-on-write bytes. Copies share the bytes; `mutable_data` first
/// makes a private copy if they are shared. The shape is static.
///
/// Thread-safety: concurrent reads of one Literal, and any use of distinct ones, are safe.
class Literal {
 public:
  /// A rank-0 pred false.
  Literal() : Literal(Shape(ElementType::kPred, {})) {}
  /// All bytes zero. The caller must have checked the size (checked_element_count).
  explicit Literal(Shape shape)
      : shape_(std::move(shape)),
        bytes_(std::make_shared<std::vector<std::byte>>(static_cast<size_t>(shape_.byte_size()))) {}

  /// A literal of `bytes`, which must be exactly shape.byte_size().
  static Result<Literal> from_bytes(Shape shape, std::span<const std::byte> bytes);
  /// A rank-0 literal of the element at `bytes` (storage_bytes(type) of them).
  static Literal scalar_from_bytes(ElementType type, const std::byte* bytes);
  /// Rank-0 literals from host values, converted to `type` as `convert` would.
  static Literal scalar(ElementType type, double value);
  static Literal scalar_integer(ElementType type, int64_t value);
  /// A rank-1 literal of 64-bit integers.
  static Literal from_i64s(std::span<const int64_t> values);

  const Shape& shape() const { return shape_; }
  ElementType element_type() const { return shape_.element_type(); }
  int64_t element_count() const { return shape_.element_count(); }
  std::span<const std::byte> data() const { return *bytes_; }
  std::span<std::byte> mutable_data();

  /// The element at linear index `index`; T has the size of the element.
  template <class T>
  T get(int64_t index) const {
    T value;
    std::memcpy(&value, bytes_->data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void set(int64_t index, T value) {
    std::memcpy(mutable_data().data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
  }

  /// Element `index` of an integer or pred literal, sign- or zero-extended; u64 as its bits.
  int64_t get_integer(int64_t index) const;
  void set_integer(int64_t index, int64_t value);
  /// Element `index` of a float literal, exactly; for integers and pred, the value.
  double get_double(int64_t index) const;
  /// Rounds to the float element type; for integers and pred, `value` must be a value of the type.
  void set_double(int64_t index, double value);
  /// Element `index` of a complex literal, or a real element with imaginary part 0.
  std::complex<double> get_complex(int64_t index) const;
  void set_complex(int64_t index, std::complex<double> value);

  /// The same bytes with other dimensions of the same element count.
  Literal reshaped(Dims dims) const;
  /// A literal of `shape`, filled with the one element of this literal.
  Literal splat_to(const Shape& shape) const;
  /// Whether all elements have the same bytes (false when empty).
  bool is_splat() const;

  /// The element at `index` as HLO text prints it: the shortest text that reads back exactly,
  /// "nan", "inf", "(re, im)" for complex.
  std::string element_to_string(int64_t index) const;
  /// Nested braces with at most `max_elements` elements, then "…".
  std::string to_string(int64_t max_elements = 1000) const;

  /// Same shape and same bytes.
  bool operator==(const Literal& other) const;

 private:
  Shape shape_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

/// Shortest decimal text that rounds to exactly `value` in `type`; "nan", "inf", "-inf", "-0".
std::string float_to_string(ElementType type, double value);

}  // namespace tenon
