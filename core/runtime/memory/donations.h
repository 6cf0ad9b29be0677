// Donations: the buffers that an execution is given for good.
//
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/runtime/buffer.h"

namespace tenon::runtime {

/// The index of the first entry that is `given` and stands in the list more than once; the list's
/// size if no entry does. Sorts: a training step is given thousands of arrays. `less` orders the
/// pointers.
template <class Pointer, class Less = std::less<Pointer>>
size_t first_donated_twice(std::span<const Pointer> list, const std::vector<bool>& given,
                           Less less = {}) {
  if (std::ranges::find(given, true) == given.end()) return list.size();
  std::vector<std::pair<Pointer, size_t>> sorted;
  sorted.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) sorted.emplace_back(list[i], i);
  std::ranges::sort(sorted, [&](const auto& a, const auto& b) { return less(a.first, b.first); });
  size_t first = list.size();
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1].first != sorted[i].first) continue;
    for (const size_t each : {sorted[i - 1].second, sorted[i].second}) {
      if (given[each]) first = std::min(first, each);
    }
  }
  return first;
}

/// Gives the memory back to the buffers unless the execution comes to be.
class Donations {
 public:
  Donations() = default;
  ~Donations() {
    for (auto& [buffer, memory] : taken_) buffer->restore(std::move(memory));
  }
  Donations(const Donations&) = delete;
  Donations& operator=(const Donations&) = delete;

  /// Whether its memory may be written. Errors: it is gone already.
  Result<bool> take(const BufferPtr& buffer) {
    // Before the buffer gives its memory away, and by doubling: one place at a time is quadratic.
    if (taken_.size() == taken_.capacity()) taken_.reserve(2 * taken_.size() + 8);
    TENON_ASSIGN(Buffer::Donated donated, buffer->donate());
    taken_.emplace_back(buffer, std::move(donated.storage));
    return donated.writable;
  }
  /// The execution has come to be.
  void keep() { taken_.clear(); }

 private:
  std::vector<std::pair<BufferPtr, BufferStorage>> taken_;
};

}  // namespace tenon::runtime
