// hlo/buffers/: buffer assignment: which arrays of a Program share memory, and where they lie.
//
// Buffer assignment: where every array of a Program lies.
#pragma once

#include "core/program/program.h"

namespace tenon::hlo {

/// Gives each temporary other than a view its offset, so that buffers whose lives overlap do not
/// share memory, and sets temporary_bytes. Lives are those of lifetimes_of(). Offsets are multiples
/// of `alignment`, a power of two of at least program::kAlignment.
void assign_buffers(program::Program& program, int64_t alignment = program::kAlignment);

}  // namespace tenon::hlo
