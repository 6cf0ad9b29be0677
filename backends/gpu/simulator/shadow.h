// Shadow memory: the accesses of a launch, to find unordered ones, which are races.
//
// Two accesses of one element race if at least one stores, not both are atomic, and they are of
// different blocks, or of different threads of a block with neither a barrier between them nor,
// within a warp, a warp barrier that both took part in.
//
// Thread-safety: none; blocks that are checked run one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::gpu {

constexpr uint32_t kWarpLanes = 32;

enum class AccessKind : uint8_t { kLoad, kStore, kAtomic };

/// Whose access it is, and when.
struct Toucher {
  int64_t block = 0;
  uint32_t thread = 0;
  uint32_t epoch = 0;  ///< Barriers of the block that it has passed.
  /// A vector clock: for each other lane of the warp the number, counted by that lane, of its last
  /// access known to happen before; for the lane itself, the number of this access.
  std::span<const uint16_t, kWarpLanes> clocks;
};

/// An earlier access that a new one races with.
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
    kBlock,   ///< Each block has it for itself: what another one did is forgotten.
  };

  /// `granule`: bytes that are always accessed together, a power of two.
  Shadow(int64_t bytes, int64_t granule, SharingScope scope);

  /// Notes an access of [offset, offset + bytes), which lies within the memory.
  std::optional<RacingAccess> touch(int64_t offset, int64_t bytes, AccessKind kind,
                                    const Toucher& by);

 private:
  // The last access of one kind; or several accesses, of whose clocks `clock` is the latest.
  struct AccessRecord {
    int32_t block = -1;  // None.
    uint32_t epoch = 0;
    uint16_t thread = 0;
    uint16_t clock = 0;
    // Another one of the several.
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
