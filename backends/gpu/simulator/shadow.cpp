#include "backends/gpu/simulator/shadow.h"

#include <algorithm>

namespace tenon::gpu {

Shadow::Shadow(int64_t bytes, int64_t granule, SharingScope scope)
    : granule_(granule),
      scope_(scope),
      cells_(static_cast<size_t>((bytes + granule - 1) / granule)) {}

bool Shadow::is_stale(const AccessRecord& slot, const Toucher& by) const {
  return slot.block < 0 || (scope_ == SharingScope::kBlock && slot.block != by.block);
}

// Whether all accesses in the slot happened before.
bool Shadow::is_before(const AccessRecord& slot, const Toucher& by) const {
  if (slot.several_blocks || slot.block != by.block) return false;
  if (slot.epoch != by.epoch) return true;
  if (slot.several_warps || slot.thread / kWarpLanes != by.thread / kWarpLanes) return false;
  if (!slot.several_threads) {
    return slot.thread == by.thread || by.clocks[slot.thread % kWarpLanes] >= slot.clock;
  }
  // The lanes of several accesses are not recorded: every lane must be known up to the latest
  // access.
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (lane != by.thread % kWarpLanes && by.clocks[lane] < slot.clock) return false;
  }
  return true;
}

void Shadow::note(AccessRecord& slot, const Toucher& by) const {
  const auto thread = static_cast<uint16_t>(by.thread);
  const uint16_t clock = by.clocks[thread % kWarpLanes];
  if (is_stale(slot, by) || is_before(slot, by)) {
    slot = {static_cast<int32_t>(by.block), by.epoch, thread, clock};
    return;
  }
  slot.other_block = static_cast<int32_t>(by.block);
  slot.other_thread = thread;
  if (slot.several_blocks || slot.block != by.block) {
    slot.several_blocks = true;  // It is no longer ordered with any access.
    return;
  }
  slot.several_threads = true;
  slot.several_warps |= slot.thread / kWarpLanes != by.thread / kWarpLanes;
  slot.clock = std::max(slot.clock, clock);
}

std::optional<RacingAccess> Shadow::touch(int64_t offset, int64_t bytes, AccessKind kind,
                                          const Toucher& by) {
  const int64_t end = (offset + bytes + granule_ - 1) / granule_;
  for (int64_t i = offset / granule_; i < end; ++i) {
    Cell& cell = cells_[static_cast<size_t>(i)];
    for (const AccessKind other : {AccessKind::kStore, AccessKind::kAtomic, AccessKind::kLoad}) {
      const AccessRecord& slot = cell.slots[static_cast<size_t>(other)];
      const bool agree = kind == other && kind != AccessKind::kStore;
      if (agree || is_stale(slot, by) || is_before(slot, by)) continue;
      const int64_t at = std::max(i * granule_, offset);
      const bool own = slot.block == by.block && slot.thread == by.thread;
      if (own) return RacingAccess{other, slot.other_block, slot.other_thread, at};
      return RacingAccess{other, slot.block, slot.thread, at};
    }
    note(cell.slots[static_cast<size_t>(kind)], by);
  }
  return std::nullopt;
}

}  // namespace tenon::gpu
