// Whole files in and out.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/types/status.h"

namespace tenon {

/// The bytes of a file. Errors name the path and the system's reason.
Result<std::string> read_file(const std::string& path);

/// A file's bytes where the system keeps them, for files that are large. Nobody shortens the file
/// meanwhile; it may be replaced.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::string_view bytes) : bytes_(bytes) {}
  std::string_view bytes_;
};

/// Writes through a temporary file beside `path` and renames it, so that no reader sees half a file
/// and a failure leaves what was there before. A link is followed; a device or pipe is written to
/// as it is.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace tenon
