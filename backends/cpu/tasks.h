// Runs workgroups as oneTBB tasks.
#pragma once

#include "backends/cpu/code.h"

namespace tenon::cpu {

/// Calls `entry` for all workgroups: at once if there are no more than `grain`, else in parts of
/// about `grain` on several threads. Each thread has its own scratch memory. Returns false, without
/// running anything, if this thread cannot allocate its scratch memory; that never happens within
/// the `entry` of a segment, which has enough.
bool run_tasks(Entry entry, std::byte* const* buffers, const uint64_t* scalars, int64_t workgroups,
               int64_t grain, int64_t scratch_bytes, const volatile uint32_t* const* stops);

}  // namespace tenon::cpu
