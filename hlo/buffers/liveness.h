// Liveness: which buffers of a Program hold values that will be read, at each step.
//
//   accesses_of()     (program.h) the buffers that a step may access, at any depth
//   SequenceEffects   the values that a sequence reads from before it, and those that it always
//                     overwrites; interference.h walks the steps with these
//   lifetimes_of()    the time for which a buffer needs its memory, as one range, from both
//
// dependencies_of() (program.h) differs: it is about bytes, runs when offsets are known, and
// buffers with different lifetimes share bytes.
#pragma once

#include <limits>
#include <unordered_set>
#include <vector>

#include "core/program/program.h"

namespace tenon::hlo {

using BufferSet = std::unordered_set<program::BufferId>;

/// The effect of a step or sequence on buffers; each buffer is given by its root.
struct Effect {
  BufferSet reads;   ///< Buffers whose values from before the step are read.
  BufferSet writes;  ///< Buffers that are completely overwritten on every path.
};

/// The effects of the sequences of a Program, computed once.
class SequenceEffects {
 public:
  explicit SequenceEffects(const program::Program& program);

  const Effect& of(program::SequenceId sequence) const { return sequences_[sequence]; }
  Effect of(const program::Step& step) const;

 private:
  void find(program::SequenceId sequence);

  const program::Program& program_;
  std::vector<Effect> sequences_;
};

/// A time range in the flattened order of steps: a step takes two times, around those of the steps
/// inside it.
struct Lifetime {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
};

/// The lifetime of each buffer that is not a view, from the first step that uses it to the last;
/// empty for an unused buffer. A buffer that a loop or conditional uses is live throughout that
/// step if another step uses it too, or if a sequence inside reads its earlier value. Otherwise it
/// is live only within one iteration, and other buffers may take its memory in the other steps of
/// the iteration.
std::vector<Lifetime> lifetimes_of(const program::Program& program);

/// Updates `live` from the buffers that are live after `effect` to those that are live before it.
void step_back(BufferSet& live, const Effect& effect);

}  // namespace tenon::hlo
