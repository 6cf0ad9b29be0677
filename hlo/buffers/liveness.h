// Which buffers of a Program hold values that will be read, at each step.
#pragma once

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

/// Updates `live` from the buffers that are live behind `effect` to those live before it.
void step_back(BufferSet& live, const Effect& effect);

}  // namespace tenon::hlo
