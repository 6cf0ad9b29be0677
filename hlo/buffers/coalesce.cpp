#include "hlo/buffers/coalesce.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "hlo/buffers/interference.h"

namespace tenon::hlo {
namespace {

using program::BufferId;
using program::BufferKind;
using program::Program;
using program::SequenceId;
using program::Step;

template <class Visit>
void for_each_step(Program& program, const Visit& visit) {
  for (program::Sequence& sequence : program.sequences) {
    for (Step& step : sequence.steps) visit(step);
  }
}

// Makes every buffer a view of the representative of its class.
void apply(Program& program, UnionFind& classes) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const BufferId kept = classes.find(program.root(id));
    if (kept != id) program.buffers[id].view_of = kept;
  }
}

// --- Copy forwarding: a temporary that only holds a copy of an argument or constant is replaced by
// its source

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
  UnionFind classes(program.buffers.size());
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (source[id] == program::kNone || writers[id] != 1) continue;
    const BufferKind from = program.buffer(source[id]).kind;
    const bool fixed = from == BufferKind::kParameter || from == BufferKind::kConstant;
    if (fixed && program.buffer(id).kind == BufferKind::kTemporary) classes.join(source[id], id);
  }
  apply(program, classes);
}

// --- Merging of buffers

bool join_all(Program& program) {
  Interference interference(program);
  std::vector<CoalesceCandidate> candidates = interference.candidates();
  // The most expensive candidate comes first.
  std::ranges::stable_sort(candidates, [&](const CoalesceCandidate& a, const CoalesceCandidate& b) {
    const auto cost = [&](const CoalesceCandidate& each) {
      return std::tuple(each.copy, each.depth, program.buffer(each.a).bytes());
    };
    return cost(a) > cost(b);
  });
  UnionFind& classes = interference.classes();
  bool changed = false;
  for (const CoalesceCandidate& candidate : candidates) {
    BufferId kept = classes.find(candidate.a);
    BufferId other = classes.find(candidate.b);
    if (kept == other || interference.between(kept, other)) continue;
    const auto is_result = [&](BufferId id) {
      return program.buffer(id).kind == BufferKind::kResult;
    };
    if (is_result(kept) && is_result(other)) continue;
    // A class that contains a result is represented by it.
    if (is_result(other)) std::swap(kept, other);
    interference.join(kept, other);
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

// --- Declaring which results of kernels may lie over which inputs

using Over = std::vector<std::pair<uint32_t, uint32_t>>;

Over over_of(const Program& program, const program::Launch& launch) {
  const kernel::Kernel& kernel = program.kernels[launch.kernel];
  Over over;
  std::unordered_multimap<BufferId, uint32_t> inputs;  // Those before `at`, by their memory.
  for (uint32_t at = 0; at < launch.buffers.size(); ++at) {
    const BufferId root = program.root(launch.buffers[at]);
    const kernel::Access access = kernel.memories[at].access;
    if (access == kernel::Access::kIn) inputs.emplace(root, at);
    if (access != kernel::Access::kOut) continue;
    const auto [begin, end] = inputs.equal_range(root);
    for (auto in = begin; in != end; ++in) over.emplace_back(at, in->second);
  }
  std::ranges::sort(over);
  return over;
}

// A kernel whose launches place its results over different inputs is duplicated for each choice.
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

// --- Donated memory

BufferId parameter_of(const Program& program, uint32_t index) { return program.parameters[index]; }

// Inserts copies of these parameters at the start of the program, and makes the program use the
// copies. Returns the copies.
std::vector<BufferId> copy_in(Program& program, const std::vector<uint32_t>& parameters) {
  std::vector<BufferId> copies(program.buffers.size(), program::kNone);
  std::vector<Step> steps;
  std::vector<BufferId> made;
  copies.reserve(program.buffers.size() + parameters.size());
  for (const uint32_t index : parameters) {
    const BufferId from = parameter_of(program, index);
    program::Buffer buffer = program.buffer(from);
    buffer.kind = BufferKind::kTemporary;
    buffer.index = 0;
    const auto to = static_cast<BufferId>(program.buffers.size());
    copies[from] = to;
    program.buffers.push_back(std::move(buffer));
    copies.push_back(program::kNone);
    steps.push_back({program::Copy{to, from}, {}, fmt::format("donated argument {}", index)});
    made.push_back(to);
  }
  const auto redirect = [&](BufferId& id) {
    if (id != program::kNone && copies[id] != program::kNone) id = copies[id];
  };
  for (program::Buffer& buffer : program.buffers) redirect(buffer.view_of);
  for_each_step(program, [&](Step& step) { for_each_buffer(step, redirect); });
  std::vector<Step>& entry = program.sequences[0].steps;
  entry.insert(entry.begin(), std::make_move_iterator(steps.begin()),
               std::make_move_iterator(steps.end()));
  return made;
}

// Donated parameters whose memory a result may reuse: those whose copy at the start of the program
// would be merged with a result.
std::vector<uint32_t> input_output_aliases(const Program& program) {
  std::set<int64_t> sizes;  // Sizes of results.
  for (const BufferId id : program.results) sizes.insert(program.buffer(program.root(id)).bytes());
  std::vector<uint32_t> candidates;
  for (const uint32_t index : program.donated) {
    const int64_t bytes = program.buffer(parameter_of(program, index)).bytes();
    if (bytes > 0 && sizes.contains(bytes)) candidates.push_back(index);
  }
  if (candidates.empty()) return {};
  Program trial = program;
  const std::vector<BufferId> copies = copy_in(trial, candidates);
  join_all(trial);
  std::vector<uint32_t> taken;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const program::Buffer& memory = trial.buffer(trial.root(copies[i]));
    if (memory.kind == BufferKind::kResult) taken.push_back(candidates[i]);
  }
  return taken;
}

// --- Unused buffers

// Replaces views of the same type and dimensions as their root by the root; erases unused
// temporaries and views.
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
    const bool free = buffer.view_of != program::kNone || buffer.kind == BufferKind::kTemporary;
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
  copy_in(program, input_output_aliases(program));
  changed |= join_all(program);
  if (!changed) return;
  erase_copies_to_themselves(program);
  declare_over(program);
  erase_unused(program);
}

}  // namespace tenon::hlo
