#include "core/backend/layers/cache/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

namespace tenon::backend {
namespace {

constexpr std::string_view kTemporary = ".tmp";
constexpr time_t kLongestWrite = 3600;  // Seconds; the writer of an older file has died.
constexpr mode_t kOwnFolder = 0700;
constexpr mode_t kOwnFile = 0600;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  bool ok() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// The reason why other users could have put files there; empty if they could not.
std::string fault_of(const struct stat& is) {
  if (is.st_uid != geteuid()) {
    return fmt::format("it belongs to user {}, not to user {}", is.st_uid, geteuid());
  }
  if ((is.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("others may write to it (mode {:04o}; make it 0700)", is.st_mode & 07777);
  }
  return "";
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

std::optional<std::string> read_all(int file, size_t size) {
  std::string bytes(size, '\0');
  size_t got = 0;
  while (got < size) {
    const ssize_t more = ::read(file, bytes.data() + got, size - got);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return {};
    got += static_cast<size_t>(more);
  }
  return bytes;
}

bool earlier(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

Result<std::unique_ptr<CacheFolder>> CacheFolder::open(const std::string& path,
                                                       int64_t most_bytes) {
  const auto failed = [&](std::string_view why) {
    return failed_precondition("{} cannot be the cache's folder: {}", path, why);
  };
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(path.c_str(), kOwnFolder) != 0 && errno != EEXIST) return failed(std::strerror(errno));
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return failed(std::strerror(errno));
  struct stat is = {};
  if (fstat(folder.number(), &is) != 0) return failed(std::strerror(errno));
  if (const std::string fault = fault_of(is); !fault.empty()) {
    return make_error(ErrorCode::kPermissionDenied, "{} cannot be the cache's folder: {}", path,
                      fault);
  }
  if (faccessat(folder.number(), ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    return failed(std::strerror(errno));
  }
  return std::unique_ptr<CacheFolder>(new CacheFolder(folder.release(), most_bytes));
}

CacheFolder::~CacheFolder() { ::close(folder_); }

std::optional<std::string> CacheFolder::read(const std::string& name) const {
  // O_NONBLOCK: opening a pipe must not wait.
  const Descriptor file(
      openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat is = {};
  if (!file.ok() || fstat(file.number(), &is) != 0 || !S_ISREG(is.st_mode)) return {};
  if (!fault_of(is).empty()) return {};
  std::optional<std::string> bytes = read_all(file.number(), static_cast<size_t>(is.st_size));
  if (bytes) static_cast<void>(futimens(file.number(), nullptr));
  return bytes;
}

bool CacheFolder::create(const std::string& name, std::string_view bytes) const {
  const Descriptor file(openat(folder_, name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnFile));
  if (!file.ok()) return false;
  if (write_all(file.number(), bytes)) return true;
  remove(name);  // The disk may be full.
  return false;
}

void CacheFolder::write(const std::string& name, std::string_view bytes) {
  static std::atomic<uint64_t> writes = 0;
  const std::string temporary = fmt::format("{}.{}.{}{}", name, getpid(), ++writes, kTemporary);
  if (!create(temporary, bytes)) return;
  if (renameat(folder_, temporary.c_str(), folder_, name.c_str()) != 0) return remove(temporary);
  account(static_cast<int64_t>(bytes.size()));
}

void CacheFolder::remove(const std::string& name) const {
  static_cast<void>(unlinkat(folder_, name.c_str(), 0));
}

// Lists the folder when the known size exceeds the bound, and each time this process has written an
// eighth of the bound, since other processes write too.
void CacheFolder::account(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  unlisted_ += bytes;
  if (held_) *held_ += bytes;
  if (held_ && *held_ <= most_bytes_ && unlisted_ <= most_bytes_ / 8) return;
  held_ = trim();
  unlisted_ = 0;
}

// Removes files while the folder exceeds its bound, and returns the bytes of the remaining files.
// After a removal an eighth of the bound is free, so that the next file does not cause another
// trim.
int64_t CacheFolder::trim() {
  struct CacheFile {
    timespec used;
    int64_t bytes;
    std::string name;
  };
  ++listings_;
  std::vector<CacheFile> entries;
  int64_t all = 0;
  Descriptor listed(openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listed.ok()) return 0;
  const std::unique_ptr<DIR, CloseFolder> folder(fdopendir(listed.number()));
  if (folder == nullptr) return 0;
  listed.release();
  const time_t now = time(nullptr);
  while (const dirent* at = readdir(folder.get())) {
    struct stat is = {};
    const std::string name = at->d_name;
    if (fstatat(folder_, name.c_str(), &is, AT_SYMLINK_NOFOLLOW) != 0) continue;  // It has gone.
    if (!S_ISREG(is.st_mode)) continue;
    if (name.ends_with(kTemporary)) {
      if (now - is.st_mtim.tv_sec > kLongestWrite) remove(name);
    } else if (name.ends_with(kCacheExtension)) {
      entries.push_back({is.st_mtim, static_cast<int64_t>(is.st_size), name});
      all += is.st_size;
    }
  }
  if (all <= most_bytes_) return all;
  std::ranges::sort(entries, earlier, &CacheFile::used);
  for (const CacheFile& entry : entries) {
    if (all <= most_bytes_ - most_bytes_ / 8) break;
    remove(entry.name);
    all -= entry.bytes;
  }
  return all;
}

}  // namespace tenon::backend
