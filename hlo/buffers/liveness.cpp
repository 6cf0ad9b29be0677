#include "hlo/buffers/liveness.h"

namespace tenon::hlo {
namespace {

using program::BufferId;
using program::Program;
using program::Step;

void add(BufferSet& to, const BufferSet& from) { to.insert(from.begin(), from.end()); }

void add_unless(BufferSet& to, const BufferSet& from, const BufferSet& except) {
  for (const BufferId id : from) {
    if (!except.contains(id)) to.insert(id);
  }
}

class StepEffect {
 public:
  StepEffect(const Program& program, const SequenceEffects& effects)
      : program_(program), effects_(effects) {}

  Effect operator()(const program::Launch& launch) const {
    Effect effect;
    const kernel::Kernel& kernel = program_.kernels[launch.kernel];
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const bool out = kernel.memories[i].access == kernel::Access::kOut;
      (out ? effect.writes : effect.reads).insert(root(launch.buffers[i]));
    }
    return effect;
  }
  Effect operator()(const program::Copy& copy) const {
    return {{root(copy.source)}, {root(copy.destination)}};
  }
  // The condition runs at least once, the body perhaps never.
  Effect operator()(const program::While& loop) const {
    const Effect& condition = effects_.of(loop.condition);
    Effect effect = condition;
    add_unless(effect.reads, {root(loop.predicate)}, condition.writes);
    add_unless(effect.reads, effects_.of(loop.body).reads, condition.writes);
    return effect;
  }
  Effect operator()(const program::Conditional& conditional) const {
    Effect effect;
    effect.writes = effects_.of(conditional.branches[0]).writes;
    for (const program::SequenceId branch : conditional.branches) {
      add(effect.reads, effects_.of(branch).reads);
      std::erase_if(effect.writes,
                    [&](BufferId id) { return !effects_.of(branch).writes.contains(id); });
    }
    effect.reads.insert(root(conditional.index));
    return effect;
  }
  Effect operator()(const program::CustomCall& call) const {
    return {roots(call.operands), roots(call.results)};
  }
  Effect operator()(const program::LibraryCallStep& call) const {
    Effect effect = {roots(call.operands), roots(call.results)};
    add_unless(effect.reads, effects_.of(call.lowered).reads, effect.writes);
    return effect;
  }

 private:
  BufferId root(BufferId id) const { return program_.root(id); }
  BufferSet roots(const std::vector<BufferId>& ids) const {
    BufferSet set;
    for (const BufferId id : ids) set.insert(root(id));
    return set;
  }

  const Program& program_;
  const SequenceEffects& effects_;
};

}  // namespace

SequenceEffects::SequenceEffects(const Program& program)
    : program_(program), sequences_(program.sequences.size()) {
  find(0);
}

void SequenceEffects::find(program::SequenceId sequence) {
  const std::vector<Step>& steps = program_.sequences[sequence].steps;
  Effect whole;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (const auto* loop = std::get_if<program::While>(&step->action)) {
      find(loop->condition);
      find(loop->body);
    } else if (const auto* call = std::get_if<program::LibraryCallStep>(&step->action)) {
      find(call->lowered);
    } else if (const auto* branch = std::get_if<program::Conditional>(&step->action)) {
      for (const program::SequenceId id : branch->branches) find(id);
    }
    const Effect effect = of(*step);
    step_back(whole.reads, effect);
    add(whole.writes, effect.writes);
  }
  sequences_[sequence] = std::move(whole);
}

Effect SequenceEffects::of(const Step& step) const {
  return std::visit(StepEffect(program_, *this), step.action);
}

void step_back(BufferSet& live, const Effect& effect) {
  for (const BufferId id : effect.writes) live.erase(id);
  add(live, effect.reads);
}

}  // namespace tenon::hlo
