// Which buffers of a Program hold values that will be read, at each step: the questions of buffer
// assignment about its steps.
//
//   accesses_of()     (program.h) the buffers that a step may touch, at any depth
//   SequenceEffects   the values that a sequence needs from before it, and surely replaces;
//                     interference.h walks the steps by these
//   lifetimes_of()    the time for which a buffer needs its memory, one range, from both
//
// dependencies_of() (program.h) is another question, about bytes: it is asked when places are
// known, and buffers of different lifetimes share bytes.
#pragma once

#include <limits>
#include <unordered_set>
#include <vector>

#include "core/program/program.h"

namespace tenon::hlo {

using BufferSet = std::unordered_set<program::BufferId>;

/// The effect of a step or sequence on buffers, which are given by their roots.
struct Effect {
  BufferSet reads;   ///< Buffers whose contents from before the step are read.
  BufferSet writes;  ///< Buffers that are overwritten whole on every path.
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

/// A range of times of the flattened order of steps: a step takes two, around those inside it.
struct Lifetime {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
};

/// The lifetime of each buffer that is no view, empty of one that nothing touches: from the first
/// step that touches it to the last. What a loop or conditional touches lives as long as that if
/// something else touches it too, or if a sequence inside reads what was there before; else within
/// one turn, in whose other steps others may take its memory.
std::vector<Lifetime> lifetimes_of(const program::Program& program);

/// Updates `live` from the buffers that are live behind `effect` to those live before it.
void step_back(BufferSet& live, const Effect& effect);

}  // namespace tenon::hlo
