#include "hlo/buffers/coalesce.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "core/kernel/in_place.h"
#include "hlo/buffers/liveness.h"

namespace tenon::hlo {
namespace {

using program::BufferId;
using program::MemoryKind;
using program::Program;
using program::SequenceId;
using program::Step;

// Calls visit(id) for every mention of a buffer by a step itself; it may change the id.
template <class Visit>
void for_each_buffer(Step& step, const Visit& visit) {
  const auto each = [&](std::vector<BufferId>& ids) {
    for (BufferId& id : ids) visit(id);
  };
  if (auto* launch = std::get_if<program::Launch>(&step.action)) {
    each(launch->buffers);
  } else if (auto* copy = std::get_if<program::Copy>(&step.action)) {
    visit(copy->destination);
    visit(copy->source);
  } else if (auto* loop = std::get_if<program::While>(&step.action)) {
    visit(loop->predicate);
  } else if (auto* branch = std::get_if<program::Conditional>(&step.action)) {
    visit(branch->index);
  } else if (auto* custom = std::get_if<program::CustomCall>(&step.action)) {
    each(custom->operands);
    each(custom->results);
  } else if (auto* call = std::get_if<program::Call>(&step.action)) {
    each(call->operands);
    each(call->results);
  }
}

template <class Visit>
void for_each_step(Program& program, const Visit& visit) {
  for (program::Sequence& sequence : program.sequences) {
    for (Step& step : sequence.steps) visit(step);
  }
}

// Which buffers have become one, by their roots.
class Classes {
 public:
  explicit Classes(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), BufferId{0});
  }
  BufferId find(BufferId id) {
    while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
    return id;
  }
  /// `kept` stands for both.
  void join(BufferId kept, BufferId other) { parents_[find(other)] = find(kept); }

 private:
  std::vector<BufferId> parents_;
};

// Makes every buffer a view of the one that stands for its class.
void apply(Program& program, Classes& classes) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const BufferId kept = classes.find(program.root(id));
    if (kept != id) program.buffers[id].view_of = kept;
  }
}

// --- What only holds a copy of an argument or constant is read where that lies

void forward_copies(Program& program) {
  std::vector<int> writers(program.buffers.size());
  std::vector<BufferId> source(program.buffers.size(), program::kNone);
  for_each_step(program, [&](const Step& step) {
    const bool within = std::holds_alternative<program::While>(step.action) ||
                        std::holds_alternative<program::Conditional>(step.action);
    if (within) return;
    for (const BufferId id : program::accesses_of(program, step).writes) ++writers[id];
    const auto* copy = std::get_if<program::Copy>(&step.action);
    if (copy != nullptr) source[program.root(copy->destination)] = program.root(copy->source);
  });
  Classes classes(program.buffers.size());
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (source[id] == program::kNone || writers[id] != 1) continue;
    const MemoryKind from = program.buffer(source[id]).kind;
    const bool fixed = from == MemoryKind::kParameter || from == MemoryKind::kConstant;
    if (fixed && program.buffer(id).kind == MemoryKind::kTemporary) classes.join(source[id], id);
  }
  apply(program, classes);
}

// --- Conflicts and wishes

// Live buffers that may be made one with others: only those of one size can.
class Live {
 public:
  explicit Live(const Program& program) : program_(&program) {}

  void add(BufferId id) { sizes_[bytes(id)].insert(id); }
  void erase(BufferId id) { sizes_[bytes(id)].erase(id); }
  bool contains(BufferId id) const { return alike(id).contains(id); }
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

// That two buffers be one.
struct Wish {
  BufferId a = 0;
  BufferId b = 0;
  bool copy = false;
  int depth = 0;  // Of loops around.
};

// A result that may lie over any of these inputs, but over one of them alone: a kernel can say no
// more.
struct OneOf {
  BufferId result = 0;
  std::vector<BufferId> inputs;
};

class Conflicts {
 public:
  explicit Conflicts(const Program& program)
      : program_(program),
        effects_(program),
        of_(program.buffers.size()),
        choices_of_(program.buffers.size()) {
    Live live(program);
    for (const BufferId id : program.results) live.add(program.root(id));
    sequence(0, live, 0);
  }

  std::vector<Wish>& wishes() { return wishes_; }
  /// Whether the classes that `a` and `b` stand for may not be one.
  bool between(BufferId a, BufferId b, Classes& classes) const {
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
  /// `a` stands for `b` too.
  void join(BufferId a, BufferId b) {
    std::vector<uint32_t>& choices = choices_of_[a];
    if (choices.size() < choices_of_[b].size()) choices.swap(choices_of_[b]);
    choices.insert(choices.end(), choices_of_[b].begin(), choices_of_[b].end());
    choices_of_[b].clear();
    for (const BufferId other : of_[b]) {
      of_[other].erase(b);
      conflict(a, other);
    }
    of_[b].clear();
  }
  size_t count(BufferId a) const { return of_[a].size(); }

 private:
  BufferId root(BufferId id) const { return program_.root(id); }

  bool is_movable(BufferId id) const {
    const program::Buffer& buffer = program_.buffer(id);
    return buffer.bytes() > 0 &&
           (buffer.kind == MemoryKind::kTemporary || buffer.kind == MemoryKind::kResult);
  }

  void conflict(BufferId a, BufferId b) {
    if (a == b || !is_movable(a) || !is_movable(b)) return;
    if (program_.buffer(a).bytes() != program_.buffer(b).bytes()) return;
    of_[a].insert(b);
    of_[b].insert(a);
  }

  void wish(BufferId a, BufferId b, bool copy, int depth) {
    // The steps beside a call write its results and their own temporaries alone.
    if (in_call_ || a == b || !is_movable(a) || !is_movable(b)) return;
    if (program_.buffer(a).bytes() == program_.buffer(b).bytes()) {
      wishes_.push_back({a, b, copy, depth});
    }
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
      if (choice.inputs.size() > 1) choose_one(std::move(choice));
    }
  }

  void choose_one(OneOf choice) {
    const auto number = static_cast<uint32_t>(choices_.size());
    choices_of_[choice.result].push_back(number);
    for (const BufferId input : choice.inputs) choices_of_[input].push_back(number);
    choices_.push_back(std::move(choice));
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
  std::vector<BufferSet> of_;
  std::vector<OneOf> choices_;
  std::vector<std::vector<uint32_t>> choices_of_;  // By buffer, numbers of choices.
  std::vector<Wish> wishes_;
  std::unordered_map<uint32_t, std::vector<std::pair<kernel::MemoryId, kernel::MemoryId>>> pairs_;
  bool in_call_ = false;
};

// --- One of two

bool join_all(Program& program) {
  Conflicts conflicts(program);
  std::vector<Wish>& wishes = conflicts.wishes();
  // What costs most comes first.
  std::ranges::stable_sort(wishes, [&](const Wish& a, const Wish& b) {
    const auto cost = [&](const Wish& wish) {
      return std::tuple(wish.copy, wish.depth, program.buffer(wish.a).bytes());
    };
    return cost(a) > cost(b);
  });
  Classes classes(program.buffers.size());
  bool changed = false;
  for (const Wish& wish : wishes) {
    BufferId kept = classes.find(wish.a);
    BufferId other = classes.find(wish.b);
    if (kept == other || conflicts.between(kept, other, classes)) continue;
    const auto is_result = [&](BufferId id) {
      return program.buffer(id).kind == MemoryKind::kResult;
    };
    if (is_result(kept) && is_result(other)) continue;
    // What stands for a class is the result among them.
    const bool swap =
        is_result(other) || (!is_result(kept) && conflicts.count(other) > conflicts.count(kept));
    if (swap) std::swap(kept, other);
    classes.join(kept, other);
    conflicts.join(kept, other);
    changed = true;
  }
  apply(program, classes);
  return changed;
}

bool erase_copies_to_themselves(Program& program) {
  bool changed = false;
  for (program::Sequence& sequence : program.sequences) {
    changed |=
        std::erase_if(sequence.steps, [&](const Step& step) {
          const auto* copy = std::get_if<program::Copy>(&step.action);
          return copy != nullptr && program.root(copy->destination) == program.root(copy->source);
        }) > 0;
  }
  return changed;
}

// --- Kernels say what may lie over what

using Over = std::vector<std::pair<uint32_t, uint32_t>>;

Over over_of(const Program& program, const program::Launch& launch) {
  const kernel::Kernel& kernel = program.kernels[launch.kernel];
  Over over;
  for (uint32_t out = 0; out < launch.buffers.size(); ++out) {
    if (kernel.memories[out].access != kernel::Access::kOut) continue;
    for (uint32_t in = 0; in < out; ++in) {
      const bool one = program.root(launch.buffers[in]) == program.root(launch.buffers[out]);
      if (one && kernel.memories[in].access == kernel::Access::kIn) over.emplace_back(out, in);
    }
  }
  return over;
}

// A kernel that is launched over different ones of its inputs becomes several.
void declare_over(Program& program) {
  std::set<std::string> names;
  for (const kernel::Kernel& kernel : program.kernels) names.insert(kernel.name);
  std::map<uint32_t, std::map<Over, uint32_t>> known;
  for_each_step(program, [&](Step& step) {
    auto* launch = std::get_if<program::Launch>(&step.action);
    if (launch == nullptr) return;
    const Over over = over_of(program, *launch);
    if (over.empty()) return;
    std::map<Over, uint32_t>& forms = known[launch->kernel];
    const auto [form, added] = forms.try_emplace(over, launch->kernel);
    if (added && forms.size() > 1) {
      form->second = static_cast<uint32_t>(program.kernels.size());
      kernel::Kernel copy = program.kernels[launch->kernel];
      for (int i = 2; !names.insert(copy.name).second; ++i) {
        copy.name = fmt::format("{}_over_{}", program.kernels[launch->kernel].name, i);
      }
      for (kernel::Memory& memory : copy.memories) memory.over = kernel::kNone;
      program.kernels.push_back(std::move(copy));
    }
    launch->kernel = form->second;
    if (!added) return;
    for (const auto& [out, in] : over) program.kernels[form->second].memories[out].over = in;
  });
}

// --- Memory that the caller gives away

BufferId parameter_of(const Program& program, uint32_t index) { return program.parameters[index]; }

// The program begins with copies of these parameters, and goes on with the copies. Gives these.
std::vector<BufferId> copy_in(Program& program, const std::vector<uint32_t>& parameters) {
  std::vector<BufferId> copies(program.buffers.size(), program::kNone);
  std::vector<Step> steps;
  std::vector<BufferId> made;
  for (const uint32_t index : parameters) {
    const BufferId from = parameter_of(program, index);
    program::Buffer buffer = program.buffer(from);
    buffer.kind = MemoryKind::kTemporary;
    buffer.index = 0;
    const auto to = static_cast<BufferId>(program.buffers.size());
    copies[from] = to;
    for (program::Buffer& view : program.buffers) {
      if (view.view_of == from) view.view_of = to;
    }
    program.buffers.push_back(std::move(buffer));
    copies.push_back(program::kNone);
    steps.push_back({program::Copy{to, from}, {}, fmt::format("donated argument {}", index)});
    made.push_back(to);
  }
  for_each_step(program, [&](Step& step) {
    for_each_buffer(step, [&](BufferId& id) {
      if (copies[id] != program::kNone) id = copies[id];
    });
  });
  std::vector<Step>& entry = program.sequences[0].steps;
  entry.insert(entry.begin(), std::make_move_iterator(steps.begin()),
               std::make_move_iterator(steps.end()));
  return made;
}

// Donated parameters whose values may become results where they lie: those that, begun with a copy,
// would have one that lies in a result's memory.
std::vector<uint32_t> taken_over(const Program& program) {
  std::vector<uint32_t> candidates;
  for (const uint32_t index : program.donated) {
    const int64_t bytes = program.buffer(parameter_of(program, index)).bytes();
    const bool any = std::ranges::any_of(program.results, [&](BufferId result) {
      return program.buffer(program.root(result)).bytes() == bytes;
    });
    if (any && bytes > 0) candidates.push_back(index);
  }
  if (candidates.empty()) return {};
  Program trial = program;
  const std::vector<BufferId> copies = copy_in(trial, candidates);
  join_all(trial);
  std::vector<uint32_t> taken;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const program::Buffer& memory = trial.buffer(trial.root(copies[i]));
    if (memory.kind == MemoryKind::kResult) taken.push_back(candidates[i]);
  }
  return taken;
}

// --- Buffers that are left

// Views that show nothing else than what they are of give way to it; what nothing names goes.
void erase_unused(Program& program) {
  const auto simplest = [&](BufferId id) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.view_of == program::kNone) return id;
    const program::Buffer& root = program.buffers[buffer.view_of];
    return buffer.type == root.type && buffer.dims == root.dims ? buffer.view_of : id;
  };
  std::vector<bool> used(program.buffers.size());
  const auto use = [&](BufferId& id) {
    id = simplest(id);
    used[id] = true;
    used[program.root(id)] = true;
  };
  for_each_step(program, [&](Step& step) { for_each_buffer(step, use); });
  for (BufferId& id : program.results) use(id);
  std::vector<BufferId> number(program.buffers.size());
  std::vector<program::Buffer> rest;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const program::Buffer& buffer = program.buffers[id];
    const bool free = buffer.view_of != program::kNone || buffer.kind == MemoryKind::kTemporary;
    if (free && !used[id]) continue;
    number[id] = static_cast<BufferId>(rest.size());
    rest.push_back(buffer);
  }
  for (program::Buffer& buffer : rest) {
    if (buffer.view_of != program::kNone) buffer.view_of = number[buffer.view_of];
  }
  program.buffers = std::move(rest);
  const auto renumber = [&](BufferId& id) { id = number[id]; };
  for_each_step(program, [&](Step& step) { for_each_buffer(step, renumber); });
  std::ranges::for_each(program.parameters, renumber);
  std::ranges::for_each(program.results, renumber);
}

}  // namespace

void coalesce_buffers(Program& program) {
  forward_copies(program);
  bool changed = erase_copies_to_themselves(program);
  copy_in(program, taken_over(program));
  changed |= join_all(program);
  if (!changed) return;
  erase_copies_to_themselves(program);
  declare_over(program);
  erase_unused(program);
}

}  // namespace tenon::hlo
