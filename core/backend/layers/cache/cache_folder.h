// The folder of the layer `cache`. Its files are loaded as code of this process, so only the user
// may have write access to it.
//
// Every file is opened relative to the descriptor of the folder that was checked, so replacing the
// path later has no effect. Links are never followed.
//
// Thread-safety: all functions may be called from any thread; several processes may share a folder.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon::backend {

/// The extension of the cache's files; other files are left alone.
inline constexpr std::string_view kCacheExtension = ".tenon-binary";

class CacheFolder {
 public:
  /// Creates the folder, with mode 0700, and its parents. Errors name the folder and the reason:
  /// kPermissionDenied if the user does not own it or others may write to it, kFailedPrecondition
  /// if it cannot be created.
  static Result<std::unique_ptr<CacheFolder>> open(const std::string& path, int64_t most_bytes);
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  ~CacheFolder();

  /// Reads a file and marks it as most recently used. Returns nothing if there is no regular file
  /// of that name that the user owns and to which others cannot write.
  std::optional<std::string> read(const std::string& name) const;
  /// Writes a file completely or not at all. While files hold more than `most_bytes`, the least
  /// recently used are removed.
  void write(const std::string& name, std::string_view bytes);
  void remove(const std::string& name) const;

  /// The number of times that the folder was listed.
  int64_t listings() const { return listings_; }

 private:
  CacheFolder(int folder, int64_t most_bytes) : folder_(folder), most_bytes_(most_bytes) {}
  bool create(const std::string& name, std::string_view bytes) const;
  void account(int64_t bytes);
  int64_t trim();

  const int folder_;
  const int64_t most_bytes_;
  std::atomic<int64_t> listings_ = 0;
  std::mutex mutex_;
  std::optional<int64_t> held_;  // Bytes in the folder, as far as known; empty: not listed yet.
  int64_t unlisted_ = 0;         // Bytes of `held_` written since the folder was listed last.
};

}  // namespace tenon::backend
