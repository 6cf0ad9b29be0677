// The memories of a device as the layer `validate` knows them. Part of validate_device.cpp, which
// has a lock for all of it.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "core/backend/layers/validate/accesses.h"
#include "core/backend/layers/validate/canaries.h"
#include "core/backend/layers/validate/progress.h"
#include "core/backend/layers/validate/validate_device.h"
#include "core/base/digest.h"

namespace tenon::backend {

class MemoryTable {
 public:
  explicit MemoryTable(const TargetInfo& target) : target_(target) {}

  /// `imported`: the host's bytes, if they are; else memory with a margin on either side.
  Status add(std::string_view function, MemoryHandle memory, int64_t bytes, uint32_t space,
             std::span<const std::byte> imported = {}) {
    if (memory == 0) return rule_violation("B10", "{} gave the handle 0", function);
    const bool is_new =
        memories_
            .try_emplace(
                memory,
                MemoryEntry{bytes, space, {}, !imported.empty(), imported, hash_of(imported), {}})
            .second;
    if (is_new) return {};
    return rule_violation("B10", "{} gave handle {} twice", function, memory);
  }

  bool contains(MemoryHandle memory) const { return memories_.contains(memory); }

  /// Takes it out. The errors that its end shows.
  std::vector<Status> remove(MemoryHandle memory, const QueueProgress& progress) {
    const auto found = memories_.find(memory);
    std::vector<Status> wrong;
    if (!progress.is_done(found->second.last_use)) {
      wrong.push_back(rule_violation("B18", "memory {} is freed while work uses it", memory));
    }
    if (hash_of(found->second.imported) != found->second.hash) {
      wrong.push_back(
          rule_violation("B28", "the bytes of imported memory {} have changed", memory));
    }
    memories_.erase(found);
    return wrong;
  }

  Status check_writable(const MemoryAddress& place, std::string_view what) const {
    const auto found = memories_.find(place.memory);
    if (found == memories_.end() || found->second.imported.empty()) return {};
    return rule_violation("B28", "{} is imported memory {}, which is only read", what,
                          place.memory);
  }

  int64_t alignment_of(MemoryHandle memory) const {
    const auto found = memories_.find(memory);
    return target_.spaces[found == memories_.end() ? 0 : found->second.space].alignment;
  }

  /// Marks bytes as used by the next work of the queue.
  Result<Guarded> use(QueueProgress& progress, uint32_t queue, MemoryHandle memory,
                      const TouchedBytes& range, MemoryUse access, std::string_view what) {
    const auto found = memories_.find(memory);
    if (found == memories_.end()) return error("B10", "{}: no memory {}", what, memory);
    MemoryEntry& of = found->second;
    const int64_t bytes = range.end - range.begin;
    if (range.begin < 0 || bytes > of.bytes - range.begin) {
      return error("B17", "{}: {} bytes at {} of {}", what, bytes, range.begin, of.bytes);
    }
    if (target_.queues > 1 && bytes > 0) {
      if (const auto other = of.accesses.add(progress, queue, range, access)) {
        return error("B20",
                     "{}: queue {} {} bytes {} to {} of memory {}, which queue {} {}; no wait "
                     "orders them",
                     what, queue, verb_of(access), range.begin, range.end, memory, other->queue,
                     verb_of(other->access));
      }
    }
    progress.use(queue, of.last_use);
    return guarded_of(*found);
  }

  Guarded guarded(MemoryHandle memory) const { return guarded_of(*memories_.find(memory)); }
  /// Memory that is gone counts as painted.
  bool is_painted(MemoryHandle memory) const {
    const auto found = memories_.find(memory);
    return found == memories_.end() || found->second.painted;
  }
  void set_painted(MemoryHandle memory) {
    if (const auto found = memories_.find(memory); found != memories_.end()) {
      found->second.painted = true;
    }
  }

  /// Memories with margins that the queue has used since its last record.
  std::vector<Guarded> used_with_margins(QueueProgress& progress, uint32_t queue) const {
    std::vector<Guarded> list;
    for (const auto& memory : memories_) {
      const MemoryEntry& of = memory.second;
      const bool around = of.painted && of.imported.empty();
      if (around && progress.uses(queue, of.last_use)) list.push_back(guarded_of(memory));
    }
    return list;
  }

 private:
  struct MemoryEntry {
    int64_t bytes = 0;
    uint32_t space = 0;
    QueueProgress::Marks last_use;
    bool painted = false;
    std::span<const std::byte> imported;
    uint64_t hash = 0;  // Hash of the imported bytes.
    MemoryAccesses accesses;
  };

  template <class... Args>
  static tl::unexpected<Status> error(std::string_view rule, fmt::format_string<Args...> format,
                                      Args&&... args) {
    return tl::make_unexpected(rule_violation(rule, format, std::forward<Args>(args)...));
  }

  static uint64_t hash_of(std::span<const std::byte> bytes) {
    if (bytes.empty()) return 0;
    return serial::short_digest_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  Guarded guarded_of(const std::pair<const MemoryHandle, MemoryEntry>& memory) const {
    const MemoryEntry& of = memory.second;
    const int64_t margin = of.imported.empty() ? margin_of(target_.spaces[of.space]) : 0;
    return {memory.first, of.bytes, margin};
  }

  const TargetInfo& target_;
  std::map<MemoryHandle, MemoryEntry> memories_;
};

}  // namespace tenon::backend
