// Which bytes of a memory the work of each queue reads and writes, so that work of different queues
// that nothing orders is found (B20). Of validate_device.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/backend/backend.h"
#include "core/backend/layers/validate/progress.h"

namespace tenon::backend {

struct TouchedBytes {
  int64_t begin = 0;
  int64_t end = 0;
  auto operator<=>(const TouchedBytes&) const = default;
  bool overlaps(const TouchedBytes& other) const { return begin < other.end && other.begin < end; }
};

enum class MemoryUse : uint8_t { kRead, kWrite };
inline std::string_view verb_of(MemoryUse access) {
  return access == MemoryUse::kWrite ? "writes" : "reads";
}

/// The bytes that a box touches from `offset` on, whose first element lies there.
inline TouchedBytes range_of(int64_t offset, const Box& box, const Dims& strides) {
  TouchedBytes range = {offset, offset + box.element_bytes};
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    if (box.sizes[d] == 0) return {offset, offset};
    const int64_t reach = (box.sizes[d] - 1) * strides[d];
    (reach < 0 ? range.begin : range.end) += reach;
  }
  return range;
}

/// Accesses to one memory that may not be done.
class MemoryAccesses {
 public:
  struct Conflict {
    uint32_t queue = 0;
    MemoryUse access = MemoryUse::kRead;
  };
  /// Notes an access by the next work of `queue`. Gives one of another queue that it conflicts
  /// with, if there is one that does not come before it.
  std::optional<Conflict> add(const QueueProgress& progress, uint32_t queue,
                              const TouchedBytes& range, MemoryUse access) {
    for (auto& [other, accesses] : queues_) {
      if (other == queue) continue;
      std::erase_if(accesses,
                    [&](const auto& each) { return progress.is_done(other, each.second); });
      for (const auto& [touched, mark] : accesses) {
        const bool writes = access == MemoryUse::kWrite || touched.second == MemoryUse::kWrite;
        if (writes && touched.first.overlaps(range) && !progress.is_before(other, mark, queue)) {
          return Conflict{other, touched.second};
        }
      }
    }
    // Work of one queue is done in order: the last access of its kind stands for those before.
    queues_[queue][{range, access}] = progress.next_record(queue);
    return {};
  }

 private:
  // By queue: bytes and what is done to them, with the record behind the last such access.
  std::map<uint32_t, std::map<std::pair<TouchedBytes, MemoryUse>, int64_t>> queues_;
};

}  // namespace tenon::backend
