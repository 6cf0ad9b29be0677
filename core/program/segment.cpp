#include "core/program/segment.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace tenon::program {
namespace {

// The sequences directly within a step.
std::vector<SequenceId*> within(Step& step) {
  if (auto* loop = std::get_if<While>(&step.action)) return {&loop->condition, &loop->body};
  if (auto* call = std::get_if<LibraryCallStep>(&step.action)) return {&call->lowered};
  std::vector<SequenceId*> branches;
  if (auto* branch = std::get_if<Conditional>(&step.action)) {
    for (SequenceId& each : branch->branches) branches.push_back(&each);
  }
  return branches;
}
std::vector<SequenceId> within(const Step& step) {
  std::vector<SequenceId> ids;
  for (const SequenceId* id : within(const_cast<Step&>(step))) ids.push_back(*id);
  return ids;
}

class Search {
 public:
  Search(const Program& program, const std::function<bool(const Step&)>& apart)
      : program_(program), apart_(apart) {}

  std::vector<StepRange> run() {
    search(0);
    return std::move(found_);
  }

 private:
  bool whole(const Step& step) const {
    if (apart_(step)) return false;
    return std::ranges::all_of(within(step), [&](SequenceId id) {
      return std::ranges::all_of(program_.sequences[id].steps,
                                 [&](const Step& inner) { return whole(inner); });
    });
  }

  void search(SequenceId id) {
    const std::vector<Step>& steps = program_.sequences[id].steps;
    const auto size = static_cast<uint32_t>(steps.size());
    for (uint32_t begin = 0; begin < size;) {
      uint32_t end = begin;
      while (end < size && whole(steps[end])) ++end;
      if (end == begin) {
        if (!apart_(steps[begin])) {
          for (const SequenceId inner : within(steps[begin])) search(inner);
        }
        ++begin;
        continue;
      }
      if (end - begin > 1 || !within(steps[begin]).empty()) found_.push_back({id, begin, end});
      begin = end;
    }
  }

  const Program& program_;
  const std::function<bool(const Step&)>& apart_;
  std::vector<StepRange> found_;
};

}  // namespace

std::vector<StepRange> segments_of(const Program& program,
                                   const std::function<bool(const Step&)>& apart) {
  return Search(program, apart).run();
}

Program segment_program(const Program& program, const StepRange& range) {
  Program segment = program;
  segment.sequences.assign(1, {});
  // Sequences are renumbered in the order of the walk.
  const std::function<void(SequenceId, std::span<const Step>)> add =
      [&](SequenceId to, std::span<const Step> steps) {
        segment.sequences[to].steps.assign(steps.begin(), steps.end());
        for (size_t i = 0; i < steps.size(); ++i) {
          // Not a reference: the sequences move when one is added.
          Step step = steps[i];
          for (SequenceId* inner : within(step)) {
            const auto number = static_cast<SequenceId>(segment.sequences.size());
            segment.sequences.emplace_back();
            add(number, program.sequences[std::exchange(*inner, number)].steps);
          }
          segment.sequences[to].steps[i] = std::move(step);
        }
      };
  const std::span<const Step> steps = program.sequences[range.sequence].steps;
  add(0, steps.subspan(range.begin, range.end - range.begin));
  find_dependencies(segment);
  return segment;
}

StepCounts count_steps(const Program& program, const StepRange& range,
                       const std::function<bool(const LibraryCallStep&)>& takes) {
  StepCounts counts;
  const std::function<void(std::span<const Step>)> add = [&](std::span<const Step> steps) {
    for (const Step& step : steps) {
      const auto* call = std::get_if<LibraryCallStep>(&step.action);
      const bool taken = call != nullptr && takes(*call);
      counts.kernels += std::holds_alternative<Launch>(step.action) ? 1 : 0;
      counts.host += std::holds_alternative<CustomCall>(step.action) ? 1 : 0;
      counts.calls += taken ? 1 : 0;
      if (taken) continue;
      for (const SequenceId inner : within(step)) add(program.sequences[inner].steps);
    }
  };
  const std::span<const Step> steps = program.sequences[range.sequence].steps;
  add(steps.subspan(range.begin, range.end - range.begin));
  return counts;
}

std::vector<int64_t> memory_sizes(const Program& program) {
  std::vector<int64_t> sizes;
  for (const auto* list : {&program.parameters, &program.results}) {
    for (const BufferId id : *list) sizes.push_back(program.buffer(id).bytes());
  }
  for (const Literal& constant : program.constants) {
    sizes.push_back(static_cast<int64_t>(constant.data().size()));
  }
  if (program.temporary_bytes > 0) sizes.push_back(program.temporary_bytes);
  return sizes;
}

void for_each_step(const Program& program, const std::vector<StepRange>& segments,
                   const std::function<bool(const Step&)>& descends,
                   const std::function<void(const Step&)>& visit) {
  std::map<std::pair<SequenceId, uint32_t>, uint32_t> ends;
  for (const StepRange& range : segments) ends[{range.sequence, range.begin}] = range.end;
  const std::function<void(SequenceId)> walk = [&](SequenceId id) {
    const std::vector<Step>& steps = program.sequences[id].steps;
    for (uint32_t i = 0; i < steps.size();) {
      const auto end = ends.find({id, i});
      if (end != ends.end()) {
        i = end->second;
        continue;
      }
      visit(steps[i]);
      if (!std::holds_alternative<LibraryCallStep>(steps[i].action) || descends(steps[i])) {
        for (const SequenceId inner : within(steps[i])) walk(inner);
      }
      ++i;
    }
  };
  walk(0);
}

}  // namespace tenon::program
