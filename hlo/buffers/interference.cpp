#include "hlo/buffers/interference.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::hlo {

using program::BufferId;
using program::BufferKind;
using program::Program;
using program::SequenceId;
using program::Step;

// Walks the steps backwards with the set of buffers that are live after each.
class Interference::Walk {
 public:
  Walk(const Program& program, Interference& found)
      : program_(program),
        effects_(program),
        found_(found),
        since_(program.buffers.size(), program::kNone) {}

  void run() {
    for (const BufferId id : program_.results) set_live(root(id), true);
    sequence(0, 0);
    for (BufferId id = 0; id < since_.size(); ++id) set_live(id, false);
  }

 private:
  BufferId root(BufferId id) const { return program_.root(id); }

  bool is_movable(BufferId id) const {
    const program::Buffer& buffer = program_.buffer(id);
    return buffer.bytes() > 0 &&
           (buffer.kind == BufferKind::kTemporary || buffer.kind == BufferKind::kResult);
  }

  bool are_alike(BufferId a, BufferId b) const {
    return a != b && is_movable(a) && is_movable(b) &&
           program_.buffer(a).bytes() == program_.buffer(b).bytes();
  }

  // --- Live buffers. Changes are recorded, so that a walk through a branch can be undone.

  bool is_live(BufferId id) const { return since_[id] != program::kNone; }

  void change(BufferId id, bool live) {
    if (live) {
      since_[id] = now_;
      return;
    }
    if (since_[id] < now_) add(found_.of_[id].live, since_[id], {now_ - 1, id});
    since_[id] = program::kNone;
  }

  void set_live(BufferId id, bool live) {
    if (is_live(id) == live || !is_movable(id)) return;
    changes_.push_back(id);
    change(id, live);
  }

  void undo(size_t changes) {
    for (; changes_.size() > changes; changes_.pop_back()) {
      change(changes_.back(), !is_live(changes_.back()));
    }
  }

  void step_back(const Effect& effect) {
    for (const BufferId id : effect.writes) set_live(id, false);
    for (const BufferId id : effect.reads) set_live(id, true);
  }

  // --- The interference that the walk finds

  void define(BufferId id, BufferId copied = program::kNone) {
    if (is_movable(id)) found_.of_[id].definitions.emplace(now_, copied);
  }

  // The buffer occupies its memory in this step, even if it is not live after it.
  void hold(BufferId id) {
    if (is_movable(id) && !is_live(id)) add(found_.of_[id].live, now_, {now_, id});
  }

  void candidate(BufferId a, BufferId b, bool copy, int depth) {
    // The lowered steps of a call write only the call's results and their own temporaries.
    if (!in_call_ && are_alike(a, b)) found_.candidates_.push_back({a, b, copy, depth});
  }

  // --- Steps

  void sequence(SequenceId id, int depth) {
    const std::vector<Step>& steps = program_.sequences[id].steps;
    for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
      std::visit([&](const auto& action) { step(action, depth); }, at->action);
      ++now_;
      if (!std::holds_alternative<program::While>(at->action) &&
          !std::holds_alternative<program::Conditional>(at->action)) {
        step_back(effects_.of(*at));
      }
    }
  }

  void step(const program::Launch& launch, int depth) {
    const kernel::Kernel& kernel = program_.kernels[launch.kernel];
    found_.kernels_.emplace(now_, launch.kernel);
    std::unordered_map<BufferId, int> uses;
    for (kernel::MemoryId i = 0; i < launch.buffers.size(); ++i) {
      const BufferId id = root(launch.buffers[i]);
      ++uses[id];
      if (is_movable(id)) found_.of_[id].uses[now_].push_back(i);
    }
    const bool may_merge =
        std::ranges::any_of(launch.buffers, [&](BufferId id) { return is_movable(root(id)); });
    if (!may_merge) return;
    const kernel::InPlacePairs& pairs = found_.pairs_of(launch.kernel);
    for (kernel::MemoryId i = 0; i < launch.buffers.size(); ++i) {
      if (kernel.memories[i].access == kernel::Access::kIn) continue;
      const BufferId out = root(launch.buffers[i]);
      define(out);
      for (const kernel::MemoryId in : pairs.inputs_of(i)) {
        const BufferId other = root(launch.buffers[in]);
        if (uses[other] == 1) candidate(out, other, false, depth);
      }
    }
  }

  void step(const program::Copy& copy, int depth) {
    const BufferId to = root(copy.destination);
    const BufferId from = root(copy.source);
    define(to, from);
    candidate(to, from, true, depth);
  }

  // Liveness of a buffer that a loop uses, at the ends of the loop's body (before_condition) and
  // condition (behind_condition).
  struct AroundLoop {
    BufferId id = 0;
    bool before_condition = false;
    bool behind_condition = false;
  };

  std::vector<AroundLoop> around(const program::While& loop) const {
    const Effect& condition = effects_.of(loop.condition);
    const Effect& body = effects_.of(loop.body);
    BufferSet touched = {root(loop.predicate)};
    for (const Effect* effect : {&condition, &body}) {
      touched.insert(effect->reads.begin(), effect->reads.end());
      touched.insert(effect->writes.begin(), effect->writes.end());
    }
    std::vector<AroundLoop> found;
    for (const BufferId id : touched) {
      const bool needed = is_live(id) || id == root(loop.predicate) || body.reads.contains(id);
      const bool before_condition =
          (needed && !condition.writes.contains(id)) || condition.reads.contains(id);
      // A buffer that is live at the start of the body is live after the condition.
      const bool before_body =
          (before_condition && !body.writes.contains(id)) || body.reads.contains(id);
      found.push_back({id, before_condition, needed || before_body});
    }
    return found;
  }

  void step(const program::While& loop, int depth) {
    const std::vector<AroundLoop> ends = around(loop);
    for (const AroundLoop& each : ends) set_live(each.id, each.before_condition);
    size_t changes = changes_.size();
    sequence(loop.body, depth + 1);
    undo(changes);
    for (const AroundLoop& each : ends) set_live(each.id, each.behind_condition);
    changes = changes_.size();
    sequence(loop.condition, depth + 1);
    undo(changes);
    for (const AroundLoop& each : ends) set_live(each.id, each.before_condition);
  }

  void step(const program::Conditional& conditional, int depth) {
    struct Before {
      size_t branches = 0;  // Branches that change whether it is live.
      bool live = false;    // Whether it is live before one of them.
    };
    std::unordered_map<BufferId, Before> before;
    const size_t changes = changes_.size();
    for (const SequenceId branch : conditional.branches) {
      sequence(branch, depth);
      const BufferSet changed(changes_.begin() + static_cast<std::ptrdiff_t>(changes),
                              changes_.end());
      for (const BufferId id : changed) {
        Before& each = before[id];
        ++each.branches;
        each.live |= is_live(id);
      }
      undo(changes);
    }
    for (const auto& [id, each] : before) {
      const bool some_keep = each.branches < conditional.branches.size();
      set_live(id, each.live || (some_keep && is_live(id)));
    }
    set_live(root(conditional.index), true);
  }

  // A call may write a result before it has read all its operands.
  void apart(const std::vector<BufferId>& results, const std::vector<BufferId>& operands) {
    for (const BufferId result : results) define(root(result));
    BufferSet held;
    for (const auto* list : {&results, &operands}) {
      for (const BufferId id : *list) held.insert(root(id));
    }
    for (const BufferId id : held) hold(id);
  }

  // A step without sequences inside, whose results must not overlap its operands.
  template <class Action>
  void step(const Action& action, int) {
    std::vector<BufferId> reads;
    std::vector<BufferId> writes;
    action.members(action, [&](auto role, const auto& member) {
      using Role = decltype(role);
      if constexpr (std::is_same_v<Role, program::role::Reads>) {
        program::detail::each(member, [&](BufferId id) { reads.push_back(id); });
      } else if constexpr (std::is_same_v<Role, program::role::Writes>) {
        program::detail::each(member, [&](BufferId id) { writes.push_back(id); });
      }
    });
    apart(writes, reads);
  }

  void step(const program::LibraryCallStep& call, int depth) {
    apart(call.results, call.operands);
    ++now_;
    const size_t changes = changes_.size();
    in_call_ = true;
    sequence(call.lowered, depth);
    in_call_ = false;
    undo(changes);
  }

  const Program& program_;
  const SequenceEffects effects_;
  Interference& found_;
  Time now_ = 0;
  std::vector<Time> since_;  // The first time of each live buffer, else program::kNone.
  std::vector<BufferId> changes_;
  bool in_call_ = false;
};

Interference::Interference(const Program& program)
    : program_(program), of_(program.buffers.size()), classes_(program.buffers.size()) {
  Walk(program, *this).run();
}

// Where the new range overlaps an earlier one, several members are live.
void Interference::add(Ranges& live, Time first, LiveRange range) {
  auto at = live.upper_bound(first);
  if (at != live.begin() && std::prev(at)->second.last >= first) --at;
  while (true) {
    if (at == live.end() || at->first > range.last) {
      live.emplace_hint(at, first, range);
      return;
    }
    if (at->first > first) {
      live.emplace_hint(at, first, LiveRange{at->first - 1, range.member});
      first = at->first;
    } else if (at->first < first) {
      const LiveRange whole = at->second;
      at->second.last = first - 1;
      at = live.emplace_hint(std::next(at), first, whole);
    }
    // Both begin at this time.
    const LiveRange there = at->second;
    if (there.last > range.last) {
      at->second = {range.last, program::kNone};
      live.emplace_hint(std::next(at), range.last + 1, there);
      return;
    }
    at->second.member = program::kNone;
    if (there.last == range.last) return;
    first = there.last + 1;
    ++at;
  }
}

bool Interference::defines_within(const Class& defined, const Class& live) {
  const auto overwrites = [](BufferId copied, const LiveRange& range) {
    return range.member == program::kNone || copied != range.member;
  };
  if (defined.definitions.size() <= live.live.size()) {
    work_ += static_cast<int64_t>(defined.definitions.size());
    return std::ranges::any_of(defined.definitions, [&](const auto& each) {
      const auto behind = live.live.upper_bound(each.first);
      if (behind == live.live.begin()) return false;
      const LiveRange& range = std::prev(behind)->second;
      return range.last >= each.first && overwrites(each.second, range);
    });
  }
  work_ += static_cast<int64_t>(live.live.size());
  return std::ranges::any_of(live.live, [&](const auto& each) {
    const auto& [first, range] = each;
    for (auto at = defined.definitions.lower_bound(first);
         at != defined.definitions.end() && at->first <= range.last; ++at, ++work_) {
      if (overwrites(at->second, range)) return true;
    }
    return false;
  });
}

const kernel::InPlacePairs& Interference::pairs_of(uint32_t kernel) {
  return pairs_.try_emplace(kernel, program_.kernels[kernel]).first->second;
}

// Whether a launch may use the same memory for these buffers of its kernel: for inputs only, for
// one written buffer only, or for a written buffer over one input. A kernel cannot declare more.
bool Interference::may_share(Time launch, const std::vector<kernel::MemoryId>& x,
                             const std::vector<kernel::MemoryId>& y) {
  const uint32_t number = kernels_.at(launch);
  const kernel::Kernel& kernel = program_.kernels[number];
  const auto is_read = [&](kernel::MemoryId m) {
    return kernel.memories[m].access == kernel::Access::kIn;
  };
  work_ += static_cast<int64_t>(x.size() + y.size());
  if (std::ranges::all_of(x, is_read) && std::ranges::all_of(y, is_read)) return true;
  if (x.size() != 1 || y.size() != 1) return false;
  const kernel::InPlacePairs& pairs = pairs_of(number);
  return pairs.contains(x[0], y[0]) || pairs.contains(y[0], x[0]);
}

// Whether some launch that uses both classes requires separate memory for them.
bool Interference::conflicts(const Class& x, const Class& y) {
  const bool fewer = x.uses.size() <= y.uses.size();
  const auto& some = fewer ? x.uses : y.uses;
  const auto& others = fewer ? y.uses : x.uses;
  work_ += static_cast<int64_t>(some.size());
  return std::ranges::any_of(some, [&](const auto& each) {
    const auto other = others.find(each.first);
    return other != others.end() && !may_share(each.first, each.second, other->second);
  });
}

bool Interference::between(BufferId a, BufferId b) {
  const uint64_t pair = (uint64_t{std::min(a, b)} << 32) | std::max(a, b);
  if (refused_.contains(pair)) return true;
  const Class& x = of_[a];
  const Class& y = of_[b];
  const bool found = defines_within(x, y) || defines_within(y, x) || conflicts(x, y);
  if (found) refused_.insert(pair);
  return found;
}

void Interference::join(BufferId kept, BufferId other) {
  classes_.join(kept, other);
  Class& into = of_[kept];
  Class& from = of_[other];
  if (into.size() < from.size()) std::swap(into, from);
  work_ += static_cast<int64_t>(from.size());
  into.definitions.merge(from.definitions);
  for (const auto& [first, range] : from.live) add(into.live, first, range);
  for (auto& [launch, buffers] : from.uses) {
    std::vector<kernel::MemoryId>& all = into.uses[launch];
    all.insert(all.end(), buffers.begin(), buffers.end());
  }
  from = {};
}

}  // namespace tenon::hlo
