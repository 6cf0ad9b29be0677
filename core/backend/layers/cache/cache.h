// core/backend/layers/cache/: the layer `cache`: keeps compiled code in a folder.
//
// The result of a compilation is kept in a folder; later compilations, by any process, read it from
// there.
//
// An entry's key is everything on which the compilation depends (B13): the backend and its version,
// compiler_id, the target, and the serial form of the kernels, the library call or the segment. The
// constants of a segment may be large, so the key contains their shapes and digests instead. The
// entry contains the key, which is compared in full, so that two compilations are never confused.
// An entry that is damaged, of another release, or refused by the backend's load is compiled again.
// When the folder exceeds its bound, the least recently used entries are removed.
//
// The contents of the folder run as code of this process: a folder that other users own or may
// write to is not used (cache_folder.h).
//
// Thread-safety: as for a Backend; several processes may share a folder.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/backend/backend.h"
#include "core/backend/layers/cache/cache_folder.h"

namespace tenon::backend {

struct CacheConfig {
  std::string folder;  ///< Created if it does not exist.
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
  Status status;                              ///< The reason why there is no folder.
};

CacheLayer make_cache_layer(std::shared_ptr<Backend> inner, const CacheConfig& config);

/// TENON_CACHE, or tenon in the user's cache folder; TENON_CACHE_BYTES. The folder is empty if the
/// environment sets neither TENON_CACHE nor an absolute XDG_CACHE_HOME or HOME. Errors:
/// TENON_CACHE_BYTES is not a number of bytes.
Result<CacheConfig> cache_config_from_environment();

}  // namespace tenon::backend
