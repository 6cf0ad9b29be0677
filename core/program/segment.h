// Segments: ranges of steps that a backend may compile as one executable, including loops and
// branches (backend.h, compile_segment).
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

/// The longest ranges of steps in which `apart` is false for every step, and for every step within
/// one. Each range has more than one step, or is a loop or branch. Sequences within such a range
/// are not searched.
std::vector<StepRange> segments_of(const Program& program,
                                   const std::function<bool(const Step&)>& apart);

/// A memory of an execution: a parameter, result or constant by its index, or the block of
/// temporaries (index 0).
struct MemoryRef {
  BufferKind kind = BufferKind::kTemporary;
  uint32_t index = 0;
  bool operator==(const MemoryRef&) const = default;
};

/// A range of steps as a separate Program.
struct Segment {
  /// Its entry sequence is the steps of the range. It contains only the kernels, buffers and
  /// memories that they use, each with a new index. Temporaries keep their offsets.
  Program program;
  /// For each entry of memory_sizes(program), the corresponding memory of the whole Program.
  std::vector<MemoryRef> memories;
};

/// The segment of a range. Valid if `program` is. The cost grows with the range, not with the whole
/// Program.
Segment segment_of(const Program& program, const StepRange& range);

/// Counts the launches and library calls in the range, including those within loops and branches. A
/// library call counts as one call if `takes` says that the backend has taken it, else as its
/// lowered steps.
StepCounts count_steps(const Program& program, const StepRange& range,
                       const std::function<bool(const LibraryCallStep&)>& takes);

/// The sizes in bytes of the memories of a Program, in the order in which a segment takes them:
/// parameters, results, constants, the block of temporaries if there is one (compile_segment).
std::vector<int64_t> memory_sizes(const Program& program);

/// Visits the steps of the Program that are run outside of `segments`, including those within loops
/// and branches and, if `descends` is true for a library call, those of its lowered steps.
void for_each_step(const Program& program, const std::vector<StepRange>& segments,
                   const std::function<bool(const Step&)>& descends,
                   const std::function<void(const Step&)>& visit);

}  // namespace tenon::program
