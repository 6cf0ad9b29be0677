// core/backend/layers/cache/: the layer `cache`: keeps compiled code in a folder.
//
// The layer `cache`: a compilation's result is kept in a folder; later compilations, by any
// process, read it from there.
//
// An entry's key is all that compile depends on (B13): the backend and its version, compiler_id,
// the target, and the kernels, the library call or the segment in their serial form, but for a
// segment's constants, which may be large: for those the key has shapes and digests. The key is
// kept in the entry and compared whole, so that no two compilations are taken for each other. An
// entry that is damaged, of another release, or refused by the backend's load is compiled again.
// The entries that were not used for longest are removed when the folder holds too much.
//
// The contents of the folder run as code of this process: a folder that other users own or may
// write to is not used (cache_folder.h).
//
// Thread-safety: as a Backend's; several processes may share a folder.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/backend/backend.h"
#include "core/backend/layers/cache/cache_folder.h"

namespace tenon::backend {

struct CacheConfig {
  std::string folder;  ///< Created if it is not there.
  int64_t most_bytes = int64_t{1} << 30;
};

struct CacheCounts {
  std::atomic<int64_t> found = 0;
  std::atomic<int64_t> compiled = 0;
};

struct CacheLayer {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<const CacheCounts> counts;
  std::shared_ptr<const CacheFolder> folder;  ///< Null: nothing is kept, everything is compiled.
  Status status;                              ///< Why there is no folder.
};

CacheLayer make_cache_layer(std::shared_ptr<Backend> inner, const CacheConfig& config);

/// TENON_CACHE, or tenon in the user's cache folder; TENON_CACHE_BYTES. The folder is empty where
/// the environment names none: neither TENON_CACHE nor an absolute XDG_CACHE_HOME or HOME is set.
/// Errors: TENON_CACHE_BYTES is no number of bytes.
Result<CacheConfig> cache_config_from_environment();

}  // namespace tenon::backend
