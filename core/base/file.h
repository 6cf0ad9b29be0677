// Reading and writing whole files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"

namespace tenon {

/// The bytes of a file. Errors name the path and the system's reason.
Result<std::string> read_file(const std::string& path);

/// A file mapped into memory, for large files. The file must not be truncated meanwhile; it may be
/// replaced.
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

/// A new folder below TMPDIR or /tmp that only the user can access. The destructor removes it with
/// its contents.
class TemporaryFolder {
 public:
  /// The folder's name begins with `name`. Errors: kUnavailable, with the folder and the reason.
  static Result<TemporaryFolder> create(std::string_view name);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  /// The path of a file in it.
  std::string file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// A file that is written in pieces, without a buffer in this process.
class OutputFile {
 public:
  /// Creates or replaces the file; existing readers keep the old contents.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept
      : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Errors name the path and the system's reason.
  Status write(uint64_t offset, std::string_view bytes) const;
  /// Whether the file has these bytes at this offset.
  bool holds(uint64_t offset, std::string_view bytes) const;

 private:
  OutputFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  int file_ = -1;
  std::string path_;
};

/// Writes a temporary file beside `path` and renames it, so that no reader sees a partial file and
/// a failure keeps the old contents. A link is followed; a device or pipe is written to directly.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace tenon
