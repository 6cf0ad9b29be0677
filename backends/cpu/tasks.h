// Workgroups as tasks of oneTBB.
#pragma once

#include "backends/cpu/code.h"

namespace tenon::cpu {

/// Calls `entry` for all workgroups: at once if there are no more than `grain`, else in parts of
/// about as many, on several threads. Each thread has scratch memory of its own. False if this one
/// cannot have so much: nothing ran. Within `entry` of a segment, which has no less, never.
bool run_tasks(Entry entry, std::byte* const* buffers, const uint64_t* scalars, int64_t workgroups,
               int64_t grain, int64_t scratch_bytes, const volatile uint32_t* const* stops);

}  // namespace tenon::cpu
