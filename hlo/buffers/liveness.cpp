#include "hlo/buffers/liveness.h"

#include <algorithm>
#include <unordered_map>

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
  // The condition runs at least once, the body possibly never.
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
  // A step without sequences inside.
  template <class Action>
  Effect operator()(const Action& action) const {
    Effect effect;
    action.members(action, [&](auto role, const auto& member) {
      using Role = decltype(role);
      static_assert(!std::is_same_v<Role, program::role::Runs>,
                    "a step with sequences inside needs an effect of its own");
      if constexpr (std::is_same_v<Role, program::role::Reads>) {
        program::detail::each(member, [&](BufferId id) { effect.reads.insert(root(id)); });
      } else if constexpr (std::is_same_v<Role, program::role::Writes>) {
        program::detail::each(member, [&](BufferId id) { effect.writes.insert(root(id)); });
      }
    });
    return effect;
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
    for (const program::SequenceId id : program::sequences_within(*step)) find(id);
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

// --- Lifetimes

namespace {

class Lifetimes {
 public:
  explicit Lifetimes(const Program& program)
      : program_(program),
        effects_(program),
        lifetimes_(program.buffers.size()),
        touches_(program.buffers.size()) {
    for (const program::Sequence& sequence : program.sequences) {
      for (const Step& step : sequence.steps) {
        for (const BufferId id : touched_by(step)) ++touches_[id];
      }
    }
    sequence(0);
  }

  std::vector<Lifetime> take() { return std::move(lifetimes_); }

 private:
  using Touches = std::unordered_map<BufferId, int64_t>;  // Number of steps that use each buffer.

  std::vector<BufferId> touched_by(const Step& step) const {
    program::Accesses own = program::own_accesses_of(program_, step);
    for (const BufferId id : own.writes) {
      if (!std::ranges::binary_search(own.reads, id)) own.reads.push_back(id);
    }
    return std::move(own.reads);
  }

  void touch(BufferId id, int64_t at) {
    lifetimes_[id].first = std::min(lifetimes_[id].first, at);
    lifetimes_[id].last = std::max(lifetimes_[id].last, at);
  }

  Touches sequence(program::SequenceId id) {
    Touches all;
    for (const Step& each : program_.sequences[id].steps) merge(all, step(each));
    return all;
  }

  Touches step(const Step& step) {
    const int64_t begin = clock_++;
    const std::vector<program::SequenceId> sequences = program::sequences_within(step);
    Touches inside;
    for (const program::SequenceId id : sequences) merge(inside, sequence(id));
    const int64_t end = clock_++;
    const std::vector<BufferId> own = touched_by(step);
    for (const BufferId id : own) ++inside[id];
    for (const auto& [id, count] : inside) {
      const bool carries = std::ranges::any_of(sequences, [&](program::SequenceId inner) {
        return effects_.of(inner).reads.contains(id);
      });
      if (carries || count < touches_[id] || std::ranges::find(own, id) != own.end()) {
        touch(id, begin);
        touch(id, end);
      }
    }
    return inside;
  }

  static void merge(Touches& to, Touches from) {
    if (to.size() < from.size()) std::swap(to, from);
    for (const auto& [id, count] : from) to[id] += count;
  }

  const Program& program_;
  const SequenceEffects effects_;
  std::vector<Lifetime> lifetimes_;
  std::vector<int64_t> touches_;
  int64_t clock_ = 0;
};

}  // namespace

std::vector<Lifetime> lifetimes_of(const Program& program) { return Lifetimes(program).take(); }

}  // namespace tenon::hlo
