#include "core/program/segment.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

namespace tenon::program {
namespace {

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
    return std::ranges::all_of(sequences_within(step), [&](SequenceId id) {
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
          for (const SequenceId inner : sequences_within(steps[begin])) search(inner);
        }
        ++begin;
        continue;
      }
      if (end - begin > 1 || !sequences_within(steps[begin]).empty())
        found_.push_back({id, begin, end});
      begin = end;
    }
  }

  const Program& program_;
  const std::function<bool(const Step&)>& apart_;
  std::vector<StepRange> found_;
};

// Copies the steps of a range, and the parts of the whole Program that they use.
class SegmentMaker {
 public:
  explicit SegmentMaker(const Program& whole) : whole_(whole) {}

  Segment run(const StepRange& range) {
    made_.program.name = whole_.name;
    made_.program.sequences.resize(1);
    const std::span<const Step> steps = whole_.sequences[range.sequence].steps;
    add(0, steps.subspan(range.begin, range.end - range.begin));
    if (uses_temporaries_) made_.program.temporary_bytes = whole_.temporary_bytes;
    for (const auto* list : {&parameters_, &results_, &constants_}) {
      made_.memories.insert(made_.memories.end(), list->begin(), list->end());
    }
    if (made_.program.temporary_bytes > 0) made_.memories.push_back({BufferKind::kTemporary, 0});
    find_dependencies(made_.program);
    return std::move(made_);
  }

 private:
  // Sequences are renumbered in the order of the walk.
  void add(SequenceId to, std::span<const Step> steps) {
    for (const Step& each : steps) {
      // Not a reference: adding a sequence moves the others.
      Step step = each;
      if (auto* launch = std::get_if<Launch>(&step.action)) renumber(*launch);
      for_each_buffer(step, [&](BufferId& id) { id = buffer(id); });
      for_each_sequence(step, [&](SequenceId& inner) {
        const auto number = static_cast<SequenceId>(made_.program.sequences.size());
        made_.program.sequences.emplace_back();
        add(number, whole_.sequences[std::exchange(inner, number)].steps);
      });
      made_.program.sequences[to].steps.push_back(std::move(step));
    }
  }

  void renumber(Launch& launch) {
    const auto next = static_cast<uint32_t>(made_.program.kernels.size());
    const auto [known, added] = kernels_.try_emplace(launch.kernel, next);
    if (added) made_.program.kernels.push_back(whole_.kernels[launch.kernel]);
    launch.kernel = known->second;
  }

  BufferId buffer(BufferId of_whole) {
    if (const auto known = buffers_.find(of_whole); known != buffers_.end()) return known->second;
    Buffer copy = whole_.buffer(of_whole);
    const bool is_view = copy.view_of != kNone;
    if (is_view) copy.view_of = buffer(copy.view_of);
    const auto id = static_cast<BufferId>(made_.program.buffers.size());
    if (!is_view) place(copy, id);
    made_.program.buffers.push_back(std::move(copy));
    buffers_[of_whole] = id;
    return id;
  }

  // Gives a buffer the segment's index of its memory.
  void place(Buffer& buffer, BufferId id) {
    switch (buffer.kind) {
      case BufferKind::kParameter:
        if (number(buffer, parameters_)) made_.program.parameters.push_back(id);
        return;
      case BufferKind::kResult:
        if (number(buffer, results_)) made_.program.results.push_back(id);
        return;
      case BufferKind::kConstant: {
        const uint32_t of_whole = buffer.index;
        if (number(buffer, constants_)) {
          made_.program.constants.push_back(whole_.constants[of_whole]);
        }
        return;
      }
      case BufferKind::kTemporary:
        uses_temporaries_ = true;
    }
  }

  // True if the memory had no index yet.
  bool number(Buffer& buffer, std::vector<MemoryRef>& list) {
    const auto next = static_cast<uint32_t>(list.size());
    const auto [known, added] = memories_.try_emplace({buffer.kind, buffer.index}, next);
    if (added) list.push_back({buffer.kind, buffer.index});
    buffer.index = known->second;
    return added;
  }

  const Program& whole_;
  Segment made_;
  std::unordered_map<uint32_t, uint32_t> kernels_;
  std::unordered_map<BufferId, BufferId> buffers_;
  std::map<std::pair<BufferKind, uint32_t>, uint32_t> memories_;
  std::vector<MemoryRef> parameters_;
  std::vector<MemoryRef> results_;
  std::vector<MemoryRef> constants_;
  bool uses_temporaries_ = false;
};

}  // namespace

std::vector<StepRange> segments_of(const Program& program,
                                   const std::function<bool(const Step&)>& apart) {
  return Search(program, apart).run();
}

Segment segment_of(const Program& program, const StepRange& range) {
  return SegmentMaker(program).run(range);
}

StepCounts count_steps(const Program& program, const StepRange& range,
                       const std::function<bool(const LibraryCallStep&)>& takes) {
  StepCounts counts;
  const std::function<void(std::span<const Step>)> add = [&](std::span<const Step> steps) {
    for (const Step& step : steps) {
      const auto* call = std::get_if<LibraryCallStep>(&step.action);
      const bool taken = call != nullptr && takes(*call);
      counts.kernels += std::holds_alternative<Launch>(step.action) ? 1 : 0;
      counts.host += is_on_host(step) ? 1 : 0;
      counts.calls += taken ? 1 : 0;
      if (taken) continue;
      for (const SequenceId inner : sequences_within(step)) add(program.sequences[inner].steps);
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
        for (const SequenceId inner : sequences_within(steps[i])) walk(inner);
      }
      ++i;
    }
  };
  walk(0);
}

}  // namespace tenon::program
