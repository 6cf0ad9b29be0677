// Values as files: sealing a value, and reading it back.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/base/archive.h"

namespace tenon::serial {

/// T has a `serialize` in its own namespace, as archive.h describes.
template <class T>
std::string save_sealed(const Format& format, const T& value) {
  ArchiveWriter writer;
  serialize(writer, value);
  return seal(format, std::move(writer).take());
}

/// Errors: bytes that are not such a file, of a version that is not read, or damaged.
template <class T>
Result<T> load_sealed(const Format& format, std::string_view bytes) {
  TENON_ASSIGN(const Unsealed file, unseal(bytes, format));
  ArchiveReader reader(file.payload, file.version);
  T value;
  serialize(reader, value);
  TENON_TRY(Status(reader.status()));
  return value;
}

}  // namespace tenon::serial
