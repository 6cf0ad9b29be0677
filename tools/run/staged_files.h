// Writing several files to one folder: all of them, or none.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::tools {

/// Files that are written to a hidden folder within their own, and moved when all of them are
/// complete. The destructor removes what was not moved, and folders that were made for it.
class StagedFiles {
 public:
  /// Makes the folder if it is not there. Errors: kFailedPrecondition, with the path and the
  /// reason.
  static Result<StagedFiles> create(const std::filesystem::path& folder);
  StagedFiles(StagedFiles&& other) noexcept;
  StagedFiles& operator=(StagedFiles&&) = delete;
  ~StagedFiles();

  /// Where to write the file `name`.
  std::string add(const std::string& name);
  /// Moves all files into the folder, where they replace files and links of the same names, and
  /// returns their paths. Nothing is moved if a directory has one of the names, or two files have
  /// the same one.
  Result<std::vector<std::string>> move();
  /// The error with the file's own path in place of that of the hidden folder.
  Status named(Status status) const;

 private:
  StagedFiles(std::filesystem::path folder, std::filesystem::path first_new)
      : folder_(std::move(folder)), first_new_(std::move(first_new)) {}

  std::filesystem::path folder_;
  std::filesystem::path first_new_;  // The outermost folder that was made, if any.
  std::string staging_;
  std::vector<std::string> names_;
};

}  // namespace tenon::tools
