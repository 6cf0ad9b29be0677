#include "hlo/buffers/assign.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "hlo/buffers/liveness.h"

namespace tenon::hlo {
namespace {

using program::BufferId;
using program::Program;

int64_t rounded(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Finds the placed buffers whose lifetimes overlap that of another buffer. All lifetimes are known
// in advance: a tree over the buffers, in the order of their first uses, holds the last end of the
// placed ones.
class Placed {
 public:
  Placed(std::vector<BufferId> ids, const std::vector<Lifetime>& lives)
      : ids_(std::move(ids)), lives_(lives), position_(lives.size()) {
    std::ranges::sort(ids_, {}, [&](BufferId id) { return std::pair(lives[id].first, id); });
    for (size_t i = 0; i < ids_.size(); ++i) position_[ids_[i]] = i;
    while (leaves_ < ids_.size()) leaves_ *= 2;
    last_.assign(2 * leaves_, -1);
  }

  void add(BufferId id) {
    for (size_t node = leaves_ + position_[id]; node > 0; node /= 2) {
      last_[node] = std::max(last_[node], lives_[id].last);
    }
  }

  std::vector<BufferId> alive_with(BufferId id) const {
    std::vector<BufferId> found;
    find(1, 0, leaves_, lives_[id], found);
    return found;
  }

 private:
  void find(size_t node, size_t begin, size_t count, const Lifetime& life,
            std::vector<BufferId>& found) const {
    if (last_[node] < life.first || begin >= ids_.size()) return;
    if (lives_[ids_[begin]].first > life.last) return;
    if (count == 1) {
      found.push_back(ids_[begin]);
      return;
    }
    find(2 * node, begin, count / 2, life, found);
    find(2 * node + 1, begin + count / 2, count / 2, life, found);
  }

  std::vector<BufferId> ids_;  // Sorted by first use.
  const std::vector<Lifetime>& lives_;
  std::vector<size_t> position_;
  size_t leaves_ = 1;
  std::vector<int64_t> last_;
};

// Places buffers at offsets from `base` in order of time, each in the smallest free block into
// which it fits: this is fast even if many are live at once. Returns the end of the used memory.
int64_t place_in_order_of_time(Program& program, std::vector<BufferId> ids,
                               const std::vector<Lifetime>& lives, int64_t alignment,
                               int64_t base) {
  std::ranges::sort(ids, {}, [&](BufferId id) { return std::pair(lives[id].first, id); });
  std::set<std::pair<int64_t, int64_t>> by_size;  // Free blocks: size, offset.
  std::map<int64_t, int64_t> by_offset;           // Offset to size.
  std::set<std::pair<int64_t, BufferId>> ends;    // Placed live buffers: last use, id.
  int64_t top = base;
  const auto release = [&](int64_t offset, int64_t size) {
    auto behind = by_offset.lower_bound(offset);
    if (behind != by_offset.end() && behind->first == offset + size) {
      by_size.erase({behind->second, behind->first});
      size += behind->second;
      behind = by_offset.erase(behind);
    }
    if (behind != by_offset.begin()) {
      const auto before = std::prev(behind);
      if (before->first + before->second == offset) {
        by_size.erase({before->second, before->first});
        offset = before->first;
        size += before->second;
        by_offset.erase(before);
      }
    }
    by_offset.emplace(offset, size);
    by_size.emplace(size, offset);
  };
  for (const BufferId id : ids) {
    while (!ends.empty() && ends.begin()->first < lives[id].first) {
      const program::Buffer& ended = program.buffers[ends.begin()->second];
      release(ended.offset, rounded(ended.bytes(), alignment));
      ends.erase(ends.begin());
    }
    program::Buffer& buffer = program.buffers[id];
    const int64_t bytes = rounded(buffer.bytes(), alignment);
    const auto block = by_size.lower_bound({bytes, 0});
    if (block == by_size.end()) {
      buffer.offset = std::exchange(top, top + bytes);
    } else {
      const auto [size, offset] = *block;
      buffer.offset = offset;
      by_size.erase(block);
      by_offset.erase(offset);
      if (size > bytes) release(offset + bytes, size - bytes);
    }
    ends.emplace(lives[id].last, id);
  }
  return top;
}

}  // namespace

// First fit, largest first: places each buffer at the lowest offset that is free during its
// lifetime. If too many are live at one time for that, the remaining buffers are placed in order of
// time.
void assign_buffers(Program& program, int64_t alignment) {
  // Pairs of buffers that are live at the same time: about a second of work.
  constexpr size_t kMostPairs = size_t{1} << 25;
  const std::vector<Lifetime> lives = lifetimes_of(program);
  std::vector<BufferId> order;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    program::Buffer& b = program.buffers[id];
    const bool placeable = b.kind == program::BufferKind::kTemporary && b.view_of == program::kNone;
    if (placeable && b.bytes() == 0) b.offset = 0;
    if (placeable && b.bytes() > 0) order.push_back(id);
  }
  std::ranges::stable_sort(order, std::greater(),
                           [&](BufferId id) { return program.buffers[id].bytes(); });
  program.temporary_bytes = 0;
  Placed placed(order, lives);
  size_t pairs = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (pairs > kMostPairs) {
      const std::vector<BufferId> rest(order.begin() + static_cast<std::ptrdiff_t>(i), order.end());
      program.temporary_bytes =
          place_in_order_of_time(program, rest, lives, alignment, program.temporary_bytes);
      return;
    }
    program::Buffer& buffer = program.buffers[order[i]];
    const int64_t bytes = rounded(buffer.bytes(), alignment);
    std::vector<BufferId> others = placed.alive_with(order[i]);
    pairs += others.size();
    std::ranges::sort(others, {}, [&](BufferId id) { return program.buffers[id].offset; });
    int64_t offset = 0;
    for (const BufferId other : others) {
      const program::Buffer& o = program.buffers[other];
      if (o.offset >= offset + bytes) break;
      offset = std::max(offset, o.offset + rounded(o.bytes(), alignment));
    }
    buffer.offset = offset;
    placed.add(order[i]);
    program.temporary_bytes = std::max(program.temporary_bytes, offset + bytes);
  }
}

}  // namespace tenon::hlo
