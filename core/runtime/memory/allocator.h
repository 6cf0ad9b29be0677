// core/runtime/memory/: device memory of the runtime: allocator, imports, donations.
//
// Memory of one space of a device: taken from the backend in large blocks, given out in
// suballocations.
//
// Reuse is in the order of the queue for computing: a suballocation that is given back may be given
// out again at once, since its new user queues work behind the work of the previous one. A new user
// on another queue comes behind the work that had begun when the memory was given back. Memory that
// the host itself or another queue reads or writes must be kept until that is done.
//
// Thread-safety: all of it; suballocations may be dropped on any thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/backend.h"
#include "core/runtime/submission/queue_order.h"

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
struct PieceInfo {
  int64_t bytes = 0;
  int64_t free_after = 0;  ///< Suballocation::free_after.
};
/// Free parts of a block by their offsets.
using PiecesByOffset = std::map<int64_t, PieceInfo>;

/// Names the use and the user of memory, for messages. Copies share the text.
class MemoryLabel {
 public:
  MemoryLabel() = default;
  MemoryLabel(std::string text)  // NOLINT: a text is one.
      : text_(std::make_shared<const std::string>(std::move(text))) {}
  MemoryLabel(const char* text) : MemoryLabel(std::string(text)) {}  // NOLINT

  std::string_view text() const { return text_ == nullptr ? std::string_view() : *text_; }

 private:
  std::shared_ptr<const std::string> text_;
};

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
  /// Null where the host cannot write it (B29).
  std::byte* writable_host() const { return is_writable_ ? host_ : nullptr; }
  int64_t bytes() const { return bytes_; }
  std::string_view label() const { return label_.text(); }
  /// The last work of the queue for computing that may have used the memory before.
  WorkPosition free_after() const { return {0, free_after_}; }

  // With the device's in_order().

  /// Work of another queue reads it, and keeps it until that is done.
  void note_read(const WorkPosition& reader) { readers_.raise(reader); }
  /// The work that comes before work that writes it.
  const WorkMarks& readers() const { return readers_; }

 protected:
  Suballocation() = default;

 private:
  friend class Allocator;

  std::shared_ptr<Allocator> owner_;
  backend::MemoryHandle memory_ = 0;
  int64_t offset_ = 0;
  std::byte* host_ = nullptr;
  bool is_writable_ = false;
  int64_t bytes_ = 0;  // As asked for.
  int64_t taken_ = 0;  // With padding for alignment.
  int64_t free_after_ = 0;
  WorkMarks readers_;
  MemoryLabel label_;
  // The list of its owner's suballocations.
  Suballocation* before_ = nullptr;
  Suballocation* next_ = nullptr;
  // Nodes of the lists of free pieces, for its return without allocation.
  PiecesByOffset::node_type piece_;
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
    /// The counts of the queue for computing; null if there is no other queue.
    std::shared_ptr<const QueueCounts> computed;
  };

  Allocator(AllocatorDevice device, uint32_t space, const backend::SpaceInfo& info);

  /// `label` names the use and the user. When there is no room, or much more is free than in use,
  /// blocks that are free are given back and it is tried again; without room then it is an error of
  /// kResourceExhausted that lists the largest suballocations in use. `user`: the queue that uses
  /// the memory first; for another than the one for computing, memory whose last use is done is
  /// better.
  Result<std::shared_ptr<Suballocation>> allocate(int64_t bytes, const MemoryLabel& label,
                                                  QueueRole user = QueueRole::kCompute);
  /// Waits for the device, and gives the blocks that are free then back to the backend. Threads
  /// that trim at once do so one after the other.
  Status trim();
  /// Forgets the device: its memory is gone or will be freed by its close.
  void abandon();
  MemoryStatistics statistics() const;
  /// Begins the peak, the largest allocation and the count of allocations again.
  void clear_statistics();

 private:
  friend class Suballocation;
  struct MemoryBlock {
    int64_t bytes = 0;
    std::byte* host = nullptr;  ///< Where the host can see it.
    PiecesByOffset free;        ///< Neighbours joined, as far as they may be.

    bool is_free() const { return free.size() == 1 && free.begin()->second.bytes == bytes; }
  };

  using Piece = PiecesByOffset::value_type;
  bool may_join(const Piece& first, const Piece& second) const;
  /// Joins all neighbours, whether their last uses are done or not.
  void join_all();
  void give_back(Suballocation& suballocation);
  std::shared_ptr<Suballocation> take(int64_t bytes, const MemoryLabel& label, QueueRole user);
  /// The nodes of one more free piece.
  struct PieceNodes {
    PiecesByOffset::node_type piece;
    FreePieces::node_type by_size;
  };
  PieceNodes nodes();
  void keep(PieceNodes nodes);
  /// The piece for so many bytes, end() if there is none.
  FreePieces::const_iterator find_piece(int64_t bytes, QueueRole user) const;
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
  Status exhausted(int64_t bytes, const MemoryLabel& label, const Status& why) const;

  AllocatorDevice device_;
  const uint32_t space_;
  const backend::SpaceInfo info_;
  std::mutex trimming_;  // Before mutex_.
  mutable std::mutex mutex_;
  std::map<backend::MemoryHandle, MemoryBlock> blocks_;
  FreePieces by_size_;             // Free pieces of all blocks.
  Suballocation* live_ = nullptr;  // The first of those that are in use.
  // Nodes of pieces that were joined with others: pieces of one size come and go.
  std::array<PieceNodes, 8> spare_;
  size_t spares_ = 0;
  MemoryStatistics statistics_;
};

}  // namespace tenon::runtime
