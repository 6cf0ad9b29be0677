// Buffer coalescing: merges buffers whose lifetimes do not overlap.
#pragma once

#include "core/program/program.h"

namespace tenon::hlo {

/// Merges two buffers if one is copied to the other, or a kernel may write one over the other (K4),
/// unless both hold values that are needed at the same time. A loop then updates its state in
/// place, an argument that is only carried is read in place, and a scatter updates its operand
/// without a copy if this is the operand's last use. A donated argument that becomes a result in
/// place is copied to the result by one of the first steps: if the caller donates it, the two share
/// memory (runtime/executable.h) and the copy does nothing. Copies from a buffer to itself and
/// unused buffers are removed. Must run before buffers have offsets and steps have dependencies.
void coalesce_buffers(program::Program& program);

}  // namespace tenon::hlo
