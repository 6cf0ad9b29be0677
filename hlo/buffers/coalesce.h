// Buffers that share memory because one begins where the other ends.
#pragma once

#include "core/program/program.h"

namespace tenon::hlo {

/// Makes one buffer of two where a copy goes from one to the other, or a kernel may write one in
/// the place of the other (K4), unless both hold values that are needed at one time. So a loop
/// updates its state in place, an argument that is only carried is read where it lies, and what is
/// scattered into dies without a copy. A donated argument that becomes a result where it lies is
/// copied to it by one of the first steps: where the caller gives it away the two have one memory
/// (runtime/executable.h), and the copy nothing to do. Copies from a buffer to itself go; buffers
/// that nothing names any more too. Before buffers have places and steps their dependencies.
void coalesce_buffers(program::Program& program);

}  // namespace tenon::hlo
