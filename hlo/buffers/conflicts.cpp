#include "hlo/buffers/conflicts.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/kernel/in_place.h"

namespace tenon::hlo {
namespace {

using program::BufferId;
using program::MemoryKind;
using program::Program;
using program::SequenceId;
using program::Step;

// Live buffers that may be made one with others: only those of one size can.
class Live {
 public:
  explicit Live(const Program& program) : program_(&program) {}

  void add(BufferId id) { sizes_[bytes(id)].insert(id); }
  void erase(BufferId id) { sizes_[bytes(id)].erase(id); }
  void add(const BufferSet& ids) {
    for (const BufferId id : ids) add(id);
  }
  void add(const Live& other) {
    for (const auto& [size, ids] : other.sizes_) sizes_[size].insert(ids.begin(), ids.end());
  }
  void erase(const BufferSet& ids) {
    for (const BufferId id : ids) erase(id);
  }
  void step_back(const Effect& effect) {
    erase(effect.writes);
    add(effect.reads);
  }
  /// Those of the size of `id`.
  const BufferSet& alike(BufferId id) const {
    static const BufferSet kNothing;
    const auto found = sizes_.find(bytes(id));
    return found == sizes_.end() ? kNothing : found->second;
  }

 private:
  int64_t bytes(BufferId id) const { return program_->buffer(id).bytes(); }

  const Program* program_;
  std::map<int64_t, BufferSet> sizes_;
};

}  // namespace

// Walks the steps backwards with what is live behind each.
class Conflicts::Search {
 public:
  Search(const Program& program, Conflicts& found)
      : program_(program), effects_(program), found_(found) {}

  void run() {
    Live live(program_);
    for (const BufferId id : program_.results) live.add(root(id));
    sequence(0, live, 0);
  }

 private:
  BufferId root(BufferId id) const { return program_.root(id); }

  bool is_movable(BufferId id) const {
    const program::Buffer& buffer = program_.buffer(id);
    return buffer.bytes() > 0 &&
           (buffer.kind == MemoryKind::kTemporary || buffer.kind == MemoryKind::kResult);
  }

  bool are_alike(BufferId a, BufferId b) const {
    return a != b && is_movable(a) && is_movable(b) &&
           program_.buffer(a).bytes() == program_.buffer(b).bytes();
  }

  void conflict(BufferId a, BufferId b) {
    if (are_alike(a, b)) found_.add(a, b);
  }

  void wish(BufferId a, BufferId b, bool copy, int depth) {
    // The steps beside a call write its results and their own temporaries alone.
    if (!in_call_ && are_alike(a, b)) found_.wishes_.push_back({a, b, copy, depth});
  }

  // `id` gets a value while those in `live` keep theirs.
  void define(BufferId id, const Live& live, BufferId except = program::kNone) {
    for (const BufferId other : live.alike(id)) {
      if (other != except) conflict(id, other);
    }
  }

  void sequence(SequenceId id, Live& live, int depth) {
    const std::vector<Step>& steps = program_.sequences[id].steps;
    for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
      std::visit([&](const auto& action) { step(action, live, depth); }, at->action);
      if (!std::holds_alternative<program::While>(at->action) &&
          !std::holds_alternative<program::Conditional>(at->action)) {
        live.step_back(effects_.of(*at));
      }
    }
  }

  void step(const program::Launch& launch, const Live& live, int depth) {
    const kernel::Kernel& kernel = program_.kernels[launch.kernel];
    for (uint32_t i = 0; i < launch.buffers.size(); ++i) {
      if (kernel.memories[i].access == kernel::Access::kIn) continue;
      const BufferId out = root(launch.buffers[i]);
      define(out, live);
      OneOf choice{out, {}};
      for (uint32_t k = 0; k < launch.buffers.size(); ++k) {
        const BufferId other = root(launch.buffers[k]);
        if (k == i || other == out) continue;
        if (may_be_over(launch, i, k)) {
          wish(out, other, false, depth);
          choice.inputs.push_back(other);
        } else {
          conflict(out, other);
        }
      }
      if (choice.inputs.size() > 1) found_.add(std::move(choice));
    }
  }

  // Whether buffer `out` of the launch may lie where `in` does, which no other buffer does.
  bool may_be_over(const program::Launch& launch, uint32_t out, uint32_t in) {
    const BufferId under = root(launch.buffers[in]);
    if (std::ranges::count(launch.buffers, under, [&](BufferId id) { return root(id); }) != 1) {
      return false;
    }
    auto found = pairs_.find(launch.kernel);
    if (found == pairs_.end()) {
      found = pairs_.emplace(launch.kernel, kernel::in_place_pairs(program_.kernels[launch.kernel]))
                  .first;
    }
    return std::ranges::find(found->second, std::pair<kernel::MemoryId, kernel::MemoryId>{
                                                out, in}) != found->second.end();
  }

  void step(const program::Copy& copy, const Live& live, int depth) {
    const BufferId to = root(copy.destination);
    const BufferId from = root(copy.source);
    define(to, live, from);
    wish(to, from, true, depth);
  }

  void step(const program::While& loop, Live& live, int depth) {
    const Effect& condition = effects_.of(loop.condition);
    const Effect& body = effects_.of(loop.body);
    Live behind_condition = live;
    behind_condition.add(root(loop.predicate));
    behind_condition.add(body.reads);
    Live before_condition = behind_condition;
    before_condition.step_back(condition);
    // What is live where the body begins is live behind the condition.
    Live before_body = before_condition;
    before_body.step_back(body);
    behind_condition.add(before_body);
    live = before_condition;
    sequence(loop.body, before_condition, depth + 1);
    sequence(loop.condition, behind_condition, depth + 1);
  }

  void step(const program::Conditional& conditional, Live& live, int depth) {
    Live before(program_);
    for (const SequenceId branch : conditional.branches) {
      Live within = live;
      sequence(branch, within, depth);
      before.add(within);
    }
    live = std::move(before);
    live.add(root(conditional.index));
  }

  // What is called may write a result before it has read its operands.
  void apart(const std::vector<BufferId>& results, const std::vector<BufferId>& operands,
             const Live& live) {
    for (const BufferId result : results) {
      define(root(result), live);
      for (const auto* list : {&results, &operands}) {
        for (const BufferId other : *list) conflict(root(result), root(other));
      }
    }
  }

  void step(const program::CustomCall& call, const Live& live, int) {
    apart(call.results, call.operands, live);
  }

  void step(const program::Call& call, const Live& live, int depth) {
    apart(call.results, call.operands, live);
    Live within = live;
    in_call_ = true;
    sequence(call.lowered, within, depth);
    in_call_ = false;
  }

  const Program& program_;
  const Effects effects_;
  Conflicts& found_;
  std::unordered_map<uint32_t, std::vector<std::pair<kernel::MemoryId, kernel::MemoryId>>> pairs_;
  bool in_call_ = false;
};

Conflicts::Conflicts(const Program& program)
    : of_(program.buffers.size()), choices_of_(program.buffers.size()) {
  Search(program, *this).run();
}

void Conflicts::add(BufferId a, BufferId b) {
  of_[a].insert(b);
  of_[b].insert(a);
}

void Conflicts::add(OneOf choice) {
  const auto number = static_cast<uint32_t>(choices_.size());
  choices_of_[choice.result].push_back(number);
  for (const BufferId input : choice.inputs) choices_of_[input].push_back(number);
  choices_.push_back(std::move(choice));
}

bool Conflicts::between(BufferId a, BufferId b, Classes& classes) const {
  if (of_[a].contains(b)) return true;
  // What forbids it is a choice that both are part of.
  const bool fewer = choices_of_[a].size() < choices_of_[b].size();
  return std::ranges::any_of(choices_of_[fewer ? a : b], [&](uint32_t number) {
    const OneOf& choice = choices_[number];
    const auto joined = [&](BufferId id) {
      const BufferId stands = classes.find(id);
      return stands == a || stands == b;
    };
    return joined(choice.result) && std::ranges::count_if(choice.inputs, joined) > 1;
  });
}

void Conflicts::join(BufferId a, BufferId b) {
  std::vector<uint32_t>& choices = choices_of_[a];
  if (choices.size() < choices_of_[b].size()) choices.swap(choices_of_[b]);
  choices.insert(choices.end(), choices_of_[b].begin(), choices_of_[b].end());
  choices_of_[b].clear();
  for (const BufferId other : of_[b]) {
    of_[other].erase(b);
    add(a, other);
  }
  of_[b].clear();
}

}  // namespace tenon::hlo
