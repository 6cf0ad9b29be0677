// Which buffers of a Program hold values that will be read, at each step.
#pragma once

#include <unordered_set>
#include <vector>

#include "core/program/program.h"

namespace tenon::hlo {

using BufferSet = std::unordered_set<program::BufferId>;

/// What a step or sequence does to buffers, as roots.
struct Effect {
  BufferSet reads;   ///< Of what they held before.
  BufferSet writes;  ///< The whole of them, whatever way it takes.
};

/// SequenceEffects of the sequences of a Program, found once.
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

/// What is live before `effect`, where `live` is behind it.
void step_back(BufferSet& live, const Effect& effect);

}  // namespace tenon::hlo
