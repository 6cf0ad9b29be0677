// Shadow memory: records the accesses of a launch, to detect unordered ones, which are races.
//
// Two accesses of one element race if at least one is a store, not both are atomic, and they are by
// different blocks, or by different threads of a block with neither a barrier between them nor,
// within a warp, a warp barrier in which both took part.
//
// Thread-safety: not thread-safe; checked blocks run one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::gpu {

constexpr uint32_t kWarpLanes = 32;

enum class AccessKind : uint8_t { kLoad, kStore, kAtomic };

/// The thread and time of an access.
struct Toucher {
  int64_t block = 0;
  uint32_t thread = 0;
  uint32_t epoch = 0;  ///< The number of barriers that it has passed.
  /// A vector clock. For each other lane of the warp: the number, counted by that lane, of its last
  /// access known to have happened before; for the lane itself: the number of this access.
  std::span<const uint16_t, kWarpLanes> clocks;
};

/// An earlier access with which a new one races.
struct RacingAccess {
  AccessKind kind{};
  int64_t block = 0;
  uint32_t thread = 0;
  int64_t offset = 0;  ///< Offset in the memory of the first byte that both access.
};

class Shadow {
 public:
  enum class SharingScope : uint8_t {
    kLaunch,  ///< Blocks share the memory.
    kBlock,   ///< Each block has its own: accesses of other blocks are forgotten.
  };

  /// `granule`: the number of bytes that are always accessed together, a power of two.
  Shadow(int64_t bytes, int64_t granule, SharingScope scope);

  /// Records an access to [offset, offset + bytes), which must be within the memory; returns a
  /// race, if any.
  std::optional<RacingAccess> touch(int64_t offset, int64_t bytes, AccessKind kind,
                                    const Toucher& by);

 private:
  // The last access of one kind; or several accesses, with `clock` as the latest of their clocks.
  struct AccessRecord {
    int32_t block = -1;  // None.
    uint32_t epoch = 0;
    uint16_t thread = 0;
    uint16_t clock = 0;
    // Another one of the several threads.
    uint16_t other_thread = 0;
    int32_t other_block = -1;
    bool several_threads = false;
    bool several_warps = false;
    bool several_blocks = false;
  };
  struct Cell {
    AccessRecord slots[3];  // By AccessKind.
  };

  bool is_stale(const AccessRecord& slot, const Toucher& by) const;
  bool is_before(const AccessRecord& slot, const Toucher& by) const;
  void note(AccessRecord& slot, const Toucher& by) const;

  const int64_t granule_;
  const SharingScope scope_;
  std::vector<Cell> cells_;
};

}  // namespace tenon::gpu
