// Serial forms of core/types.
#pragma once

#include "core/base/archive.h"
#include "core/types/literal.h"

namespace tenon {

template <class Archive>
void serialize(Archive& a, const ElementType& type) {
  a.symbol(name_of(type));
}

inline void serialize(serial::ArchiveReader& a, ElementType& type) {
  const std::string_view name = a.symbol();
  const std::optional<ElementType> found = element_type_from_name(name);
  if (!found) a.fail("there is not an element type '{}'", name);
  type = found.value_or(ElementType{});
}

/// Element type, dimensions, bytes.
inline void serialize(serial::ArchiveWriter& a, const Literal& literal) {
  a(literal.element_type(), literal.shape().dims());
  a.raw({reinterpret_cast<const char*>(literal.data().data()), literal.data().size()});
}

inline void serialize(serial::ArchiveReader& a, Literal& literal) {
  ElementType type{};
  Dims dims;
  a(type, dims);
  const auto width = static_cast<int64_t>(storage_bytes(type));
  const Result<int64_t> count = checked_element_count(dims, width);
  if (!count || static_cast<uint64_t>(*count * width) > a.rest()) {
    return a.fail("an array larger than the file");
  }
  const Shape shape(type, dims);
  const std::string_view raw = a.raw(static_cast<size_t>(shape.byte_size()));
  if (!a.ok()) return;
  Result<Literal> read =
      Literal::from_bytes(shape, {reinterpret_cast<const std::byte*>(raw.data()), raw.size()});
  if (!read) return a.fail("{}", read.error().message());
  literal = *std::move(read);
}

}  // namespace tenon
