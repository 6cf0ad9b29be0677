// hlo/buffers/: buffer assignment: which arrays of a Program share memory, and where they lie.
//
// Buffer assignment: gives every array of a Program a location in memory.
#pragma once

#include "core/program/program.h"

namespace tenon::hlo {

/// Sets the offset of each temporary that is not a view, so that buffers with overlapping lifetimes
/// do not share memory, and sets temporary_bytes. Lifetimes are those of lifetimes_of(). Offsets
/// are multiples of `alignment`, a power of two of at least program::kAlignment.
void assign_buffers(program::Program& program, int64_t alignment = program::kAlignment);

}  // namespace tenon::hlo
