#include "tools/run/staged_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tenon::tools {

namespace fs = std::filesystem;

Result<StagedFiles> StagedFiles::create(const fs::path& folder) {
  std::error_code error;
  fs::path first_new;
  for (fs::path at = fs::absolute(folder).lexically_normal(); !fs::exists(at, error);
       at = at.parent_path()) {
    if (at == at.parent_path()) break;
    if (at.has_filename()) first_new = at;
  }
  StagedFiles files(folder, std::move(first_new));
  fs::create_directories(folder, error);
  if (error) return failed_precondition("cannot make {}: {}", folder.string(), error.message());
  std::string staging = (folder / ".tenon-XXXXXX").string();
  if (mkdtemp(staging.data()) == nullptr) {
    return failed_precondition("cannot write to {}: {}", folder.string(), std::strerror(errno));
  }
  files.staging_ = std::move(staging);
  return files;
}

StagedFiles::StagedFiles(StagedFiles&& other) noexcept
    : folder_(std::move(other.folder_)),
      first_new_(std::exchange(other.first_new_, {})),
      staging_(std::exchange(other.staging_, {})),
      names_(std::move(other.names_)) {}

StagedFiles::~StagedFiles() {
  std::error_code ignored;
  if (!staging_.empty()) fs::remove_all(staging_, ignored);
  // Others may have written to the new folders meanwhile: only empty ones are removed.
  if (first_new_.empty()) return;
  for (fs::path at = fs::absolute(folder_).lexically_normal();
       at.native().size() >= first_new_.native().size(); at = at.parent_path()) {
    if (at.has_filename() && !fs::remove(at, ignored)) break;
  }
}

std::string StagedFiles::add(const std::string& name) {
  names_.push_back(name);
  return (fs::path(staging_) / name).string();
}

Result<std::vector<std::string>> StagedFiles::move() {
  std::error_code error;
  for (const std::string& name : names_) {
    const bool is_twice = std::ranges::count(names_, name) > 1;
    if (is_twice || fs::is_directory(fs::symlink_status(folder_ / name, error))) {
      return failed_precondition("cannot write {}: {}", (folder_ / name).string(),
                                 is_twice ? "two files have that name" : "it is a directory");
    }
  }
  std::vector<std::string> paths;
  for (const std::string& name : names_) {
    const std::string path = (folder_ / name).string();
    fs::rename(fs::path(staging_) / name, path, error);
    if (error) return failed_precondition("cannot write {}: {}", path, error.message());
    first_new_.clear();
    paths.push_back(path);
  }
  return paths;
}

Status StagedFiles::named(Status status) const {
  if (status.ok()) return status;
  std::string text = status.message();
  const std::string own = folder_.string();
  for (size_t at = text.find(staging_); at != std::string::npos; at = text.find(staging_, at)) {
    text.replace(at, staging_.size(), own);
    at += own.size();
  }
  return Status(status.code(), std::move(text)).in_stage(status.stage());
}

}  // namespace tenon::tools
