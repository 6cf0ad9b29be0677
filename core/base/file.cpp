#include "core/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

namespace tenon {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return not_found("cannot read {}: {}", path, std::strerror(errno));
  std::string bytes;
  char buffer[65536];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file.get())) != 0) bytes.append(buffer, got);
  if (std::ferror(file.get()) != 0) {
    return make_error(ErrorCode::kDataLoss, "cannot read {}: {}", path, std::strerror(errno));
  }
  return bytes;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto failed = [&](const char* why) { return not_found("cannot read {}: {}", path, why); };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // A pipe may wait.
  if (file < 0) return failed(std::strerror(errno));
  struct stat is = {};
  const bool known = fstat(file, &is) == 0;
  int reason = !known ? errno : S_ISDIR(is.st_mode) ? EISDIR : 0;
  const bool other = reason == 0 && !S_ISREG(is.st_mode);
  void* mapped = nullptr;
  const auto size = static_cast<size_t>(is.st_size);
  if (reason == 0 && !other && size != 0) {
    mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) reason = errno;
  }
  ::close(file);
  if (other) return failed("a pipe or device; a regular file is needed");
  if (reason != 0) return failed(std::strerror(reason));
  return MappedFile({static_cast<const char*>(mapped), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

Result<TemporaryFolder> TemporaryFolder::create(std::string_view name) {
  const char* set = std::getenv("TMPDIR");
  const std::string_view base = set == nullptr || *set == '\0' ? "/tmp" : set;
  std::string path = fmt::format("{}/{}-XXXXXX", base, name);
  if (mkdtemp(path.data()) != nullptr) return TemporaryFolder(std::move(path));
  return make_error(ErrorCode::kUnavailable, "cannot create a temporary folder in {}: {}{}", base,
                    std::strerror(errno), set == nullptr ? "" : " (TMPDIR names it)");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  struct stat is = {};
  if (lstat(path.c_str(), &is) == 0 && S_ISREG(is.st_mode)) unlink(path.c_str());
  constexpr int kPermissions = 0666;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, kPermissions);
  if (file < 0) return failed_precondition("cannot write {}: {}", path, std::strerror(errno));
  return OutputFile(file, path);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
}

Status OutputFile::write(uint64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return make_error(ErrorCode::kDataLoss, "cannot write {}: {}", path_, std::strerror(errno));
    }
    offset += static_cast<uint64_t>(done);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

bool OutputFile::holds(uint64_t offset, std::string_view bytes) const {
  char buffer[size_t{1} << 14];
  while (!bytes.empty()) {
    const size_t piece = std::min(sizeof buffer, bytes.size());
    const ssize_t got = pread(file_, buffer, piece, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || std::memcmp(buffer, bytes.data(), static_cast<size_t>(got)) != 0) return false;
    offset += static_cast<uint64_t>(got);
    bytes.remove_prefix(static_cast<size_t>(got));
  }
  return true;
}

Status write_file(const std::string& path, std::string_view bytes) {
  // Follows a link to its target; a device or pipe is written to, not replaced.
  std::error_code ignored;
  const std::string target = std::filesystem::is_symlink(path, ignored)
                                 ? std::filesystem::weakly_canonical(path, ignored).string()
                                 : path;
  const auto status = std::filesystem::status(target, ignored);
  const bool special = std::filesystem::is_other(status);
  static std::atomic<uint64_t> writes = 0;  // Two threads may write the same file.
  const std::string temporary =
      special ? target : fmt::format("{}.{}.{}.tmp", target, getpid(), ++writes);
  const auto failed = [&] {
    const int reason = errno;
    if (!special) std::remove(temporary.c_str());
    return failed_precondition("cannot write {}: {}", path, std::strerror(reason));
  };
  File file(std::fopen(temporary.c_str(), "wb"));
  if (file == nullptr) return failed();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) return failed();
  if (std::fclose(file.release()) != 0) return failed();
  if (!special && std::rename(temporary.c_str(), target.c_str()) != 0) return failed();
  return {};
}

}  // namespace tenon
