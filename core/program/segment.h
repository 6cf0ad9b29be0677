// Segments: runs of steps that a backend may compile as one executable, loops and branches included
// (backend.h, compile_segment).
#pragma once

#include <functional>
#include <vector>

#include "core/program/program.h"
#include "core/program/step_counts.h"

namespace tenon::program {

/// Steps [begin, end) of a sequence.
struct StepRange {
  SequenceId sequence = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const StepRange&) const = default;
};

/// The longest runs of steps such that `apart` is true for none of them nor for a step within; each
/// has more than one step, or is a loop or branch. Sequences within such a run are not searched.
std::vector<StepRange> segments_of(const Program& program,
                                   const std::function<bool(const Step&)>& apart);

/// A memory of an execution: a parameter, result or constant by its index, or the block of
/// temporaries (index 0).
struct MemoryRef {
  BufferKind kind = BufferKind::kTemporary;
  uint32_t index = 0;
  bool operator==(const MemoryRef&) const = default;
};

/// A range of steps as a Program of its own.
struct Segment {
  /// Its entry is the steps of the range; it has the kernels, buffers and memories that they use
  /// alone, each with a number of its own. Temporaries lie where they lie in the whole.
  Program program;
  /// For each of memory_sizes(program), the memory of the whole Program that it is.
  std::vector<MemoryRef> memories;
};

/// The segment of a range. Valid if `program` is. What it costs grows with the range, not with the
/// whole.
Segment segment_of(const Program& program, const StepRange& range);

/// The launches and library calls that stand in the range, those of loops and branches within too;
/// a library call counts as itself if `takes` says that the backend has taken it, else as its
/// lowered steps.
StepCounts count_steps(const Program& program, const StepRange& range,
                       const std::function<bool(const LibraryCallStep&)>& takes);

/// Bytes of the memories of a Program in the order in which a segment takes them: parameters,
/// results, constants, the block of temporaries if there is one (compile_segment).
std::vector<int64_t> memory_sizes(const Program& program);

/// Visits the steps of the Program that are run outside of `segments`, those within loops, branches
/// and, if `descends` is true for a library call, in its lowered steps, too.
void for_each_step(const Program& program, const std::vector<StepRange>& segments,
                   const std::function<bool(const Step&)>& descends,
                   const std::function<void(const Step&)>& visit);

}  // namespace tenon::program
