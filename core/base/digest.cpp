#include "core/base/digest.h"

#include <fmt/format.h>

// Compiled into this file, so that users of the core link no further library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tenon::serial {

std::string digest_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

uint64_t short_digest_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace tenon::serial
