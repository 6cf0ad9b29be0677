// The layer `cache`: what was compiled once is read from a folder the next time, by whatever
// process.
//
// An entry's key is all that compile depends on (B13): the backend and its version, compiler_id,
// the target, and the kernels, the library call or the segment in their serial form, but for a
// segment's constants, which may be large: of those it is shapes and hashes of 128 bits. The key is
// kept in the entry and compared whole, so that no two compilations are taken for each other.
// Entries that are damaged or of another release are compiled again. The oldest go when the folder
// has grown too large.
//
// Thread-safety: as a Backend's; several processes may share a folder.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace tenon::backend {

struct CacheConfig {
  std::string folder;  ///< Made if it is not there.
  int64_t most_bytes = int64_t{1} << 30;
};

struct CacheCounts {
  std::atomic<int64_t> found = 0;
  std::atomic<int64_t> compiled = 0;
};

struct CacheLayer {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<const CacheCounts> counts;
};

/// A folder that cannot be written to is as good as none: everything is compiled.
CacheLayer make_cache_layer(std::shared_ptr<Backend> inner, const CacheConfig& config);

/// TENON_CACHE, or tenon in the user's cache folder; TENON_CACHE_BYTES.
CacheConfig cache_config_from_environment();

}  // namespace tenon::backend
