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

/// The Program whose entry is the steps of the range; its kernels, buffers and constants are those
/// of the whole, so that both mean the same memory by the same number. Valid if `program` is.
Program segment_program(const Program& program, const StepRange& range);

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
