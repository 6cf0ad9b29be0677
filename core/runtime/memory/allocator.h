// core/runtime/memory/: device memory of the runtime: allocator, imports, donations.
//
// Memory of one space of a device: taken from the backend in large blocks, given out in
// suballocations.
//
// Reuse is in queue order: a suballocation that is given back may be given out again at once, since
// its new user queues work behind the work of the previous one. Memory that the host itself reads
// or writes must be kept until that is done.
//
// Thread-safety: all of it; suballocations may be dropped on any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/backend/backend.h"

namespace tenon::runtime {

class Allocator;

/// A free part of a block; the smallest first.
struct FreePiece {
  int64_t bytes = 0;
  backend::MemoryHandle memory = 0;
  int64_t offset = 0;
  auto operator<=>(const FreePiece&) const = default;
};
using FreePieces = std::set<FreePiece>;

/// Bytes of device memory, given back with the last copy of its shared_ptr.
class Suballocation {
 public:
  ~Suballocation();
  Suballocation(const Suballocation&) = delete;
  Suballocation& operator=(const Suballocation&) = delete;

  backend::MemoryAddress place(int64_t offset = 0) const {
    return {memory_, offset_ + offset, nullptr};
  }
  /// Null where the host cannot see it.
  const std::byte* host() const { return host_; }
  int64_t bytes() const { return bytes_; }
  const std::string& label() const { return label_; }

 private:
  friend class Allocator;
  Suballocation() = default;

  std::shared_ptr<Allocator> owner_;
  backend::MemoryHandle memory_ = 0;
  int64_t offset_ = 0;
  const std::byte* host_ = nullptr;
  int64_t bytes_ = 0;  // As asked for.
  int64_t taken_ = 0;  // With padding for alignment.
  std::string label_;
  // Nodes of the lists of free pieces, for its return without allocation.
  std::map<int64_t, int64_t>::node_type piece_;
  FreePieces::node_type by_size_;
};

struct MemoryStatistics {
  int64_t bytes_in_use = 0;  ///< Bytes of suballocations.
  int64_t peak_bytes_in_use = 0;
  int64_t bytes_reserved = 0;      ///< Taken from the backend.
  int64_t largest_allocation = 0;  ///< Ever given out.
  int64_t allocations = 0;         ///< Suballocations ever given out.
};

class Allocator : public std::enable_shared_from_this<Allocator> {
 public:
  /// The open device: allocate and free come one at a time with load and unload (B7), and free only
  /// when no work is left (B18).
  struct AllocatorDevice {
    std::function<Result<std::shared_ptr<backend::Device>>()>
        use;  ///< Unless it is lost or closed.
    std::mutex* one_at_a_time = nullptr;
    std::function<Status()> drain;            ///< Waits for all work given so far.
    std::function<Status(Status)> note_loss;  ///< Hears the device's own errors.
  };

  Allocator(AllocatorDevice device, uint32_t space, const backend::SpaceInfo& info);

  /// `label` names the use and the user. When there is no room, or much more is free than in use,
  /// blocks that are free are given back and it is tried again; without room then it is an error of
  /// kResourceExhausted that lists the largest suballocations in use.
  Result<std::shared_ptr<Suballocation>> allocate(int64_t bytes, std::string label);
  /// Waits for the device, and gives the blocks that are free then back to the backend. Threads
  /// that trim at once do so one after the other.
  Status trim();
  /// Forgets the device: its memory is gone or will be freed by its close.
  void abandon();
  MemoryStatistics statistics() const;

 private:
  friend class Suballocation;
  struct MemoryBlock {
    int64_t bytes = 0;
    const std::byte* host = nullptr;  ///< Where the host can see it.
    std::map<int64_t, int64_t> free;  ///< Offset to bytes, neighbours joined.

    bool is_free() const { return free.size() == 1 && free.begin()->second == bytes; }
  };

  void give_back(Suballocation& suballocation);
  std::shared_ptr<Suballocation> take(int64_t bytes, const std::string& label);
  Status add_block(int64_t bytes);
  struct FreeBlocks {
    std::map<backend::MemoryHandle, MemoryBlock> blocks;
    FreePieces pieces;  ///< One each.
  };
  /// Blocks without suballocations, which are the caller's then.
  FreeBlocks take_free_blocks();
  /// Whether blocks without suballocations hold more than all suballocations do, and more than a
  /// little.
  bool has_excess() const;
  Status exhausted(int64_t bytes, const std::string& label, const Status& why) const;

  AllocatorDevice device_;
  const uint32_t space_;
  const backend::SpaceInfo info_;
  std::mutex trimming_;  // Before mutex_.
  mutable std::mutex mutex_;
  std::map<backend::MemoryHandle, MemoryBlock> blocks_;
  FreePieces by_size_;  // Free pieces of all blocks.
  using Suballocations = std::set<const Suballocation*>;
  Suballocations live_;
  MemoryStatistics statistics_;
};

}  // namespace tenon::runtime
