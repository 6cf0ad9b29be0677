#include "core/runtime/serial.h"

#include <algorithm>

#include "core/base/lines.h"

namespace tenon::serial {
template <>
inline constexpr uint64_t kEnumEnd<runtime::KernelPlacement> =
    enumerator_count<runtime::KernelPlacement>();
}  // namespace tenon::serial

namespace tenon::runtime {

// A plan with the call that it plans.
struct SavedPlan {
  program::SequenceId lowered = 0;
  backend::LibraryCallPlan plan;
};

template <class A>
void serialize(A& a, serial::Of<A, SavedPlan>& saved) {
  a(saved.lowered, saved.plan.plan, saved.plan.workspace_bytes, saved.plan.packed_bytes,
    saved.plan.seconds);
}
template <class A>
void serialize(A& a, serial::Of<A, CompiledSegment>& segment) {
  a(segment.range, segment.memories, segment.binary);
}

std::string compiled_for(const backend::Backend& backend, const backend::TargetInfo& target) {
  return fmt::format("{}\n{}\n{}", backend.name(), backend.version(), backend::to_string(target));
}

std::string save(const CompiledProgram& compiled, std::string_view compiled_for) {
  std::vector<SavedPlan> plans;
  for (const auto& [lowered, plan] : compiled.plans) plans.push_back({lowered, plan});
  serial::ArchiveWriter writer;
  writer(std::string(compiled_for), compiled.program, compiled.binary, compiled.kernel_placements,
         compiled.segments, plans, compiled.parameter_names, compiled.result_names,
         compiled.made_by);
  return serial::seal(kCompiledProgramFormat, std::move(writer).take());
}

namespace {

class CompiledProgramValidator {
 public:
  explicit CompiledProgramValidator(const CompiledProgram& compiled)
      : compiled_(compiled), program_(compiled.program) {}

  Status run() {
    if (compiled_.kernel_placements.size() != program_.kernels.size()) {
      return bad("{} placements of {} kernels", compiled_.kernel_placements.size(),
                 program_.kernels.size());
    }
    TENON_TRY(names(compiled_.parameter_names, program_.parameters.size()));
    TENON_TRY(names(compiled_.result_names, program_.results.size()));
    for (const CompiledSegment& each : compiled_.segments) TENON_TRY(segment(each));
    TENON_TRY(apart());
    std::map<program::SequenceId, const program::LibraryCallStep*> calls;
    for (const program::Sequence& sequence : program_.sequences) {
      for (const program::Step& step : sequence.steps) {
        const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
        if (call != nullptr) calls[call->lowered] = call;
      }
    }
    for (const auto& [lowered, each] : compiled_.plans) {
      const auto call = calls.find(lowered);
      if (call == calls.end()) return bad("a plan of call {}, which does not exist", lowered);
      TENON_TRY(plan(each, *call->second));
    }
    return launches();
  }

 private:
  template <class... Args>
  Status bad(fmt::format_string<Args...> format, Args&&... args) const {
    return Status(invalid_argument("compiled program {}: {}", program_.name,
                                   fmt::format(format, std::forward<Args>(args)...)));
  }

  Status names(const std::vector<std::string>& names, size_t arrays) const {
    if (names.empty() || names.size() == arrays) return {};
    return bad("{} names of {} arrays", names.size(), arrays);
  }

  Status segment(const CompiledSegment& segment) const {
    const program::StepRange& range = segment.range;
    if (range.sequence >= program_.sequences.size() || range.begin >= range.end ||
        range.end > program_.sequences[range.sequence].steps.size()) {
      return bad("a segment of steps {} to {} of sequence {}", range.begin, range.end,
                 range.sequence);
    }
    for (const program::MemoryRef& each : segment.memories) {
      if (each.index >= count(each.kind)) return bad("a segment in a memory that does not exist");
    }
    return {};
  }

  // Checks that segments share no step.
  Status apart() const {
    std::vector<program::StepRange> ranges;
    for (const CompiledSegment& each : compiled_.segments) ranges.push_back(each.range);
    std::ranges::sort(ranges, {}, [](const program::StepRange& range) {
      return std::pair(range.sequence, range.begin);
    });
    for (size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].sequence == ranges[i - 1].sequence && ranges[i].begin < ranges[i - 1].end) {
        return bad("two segments with step {} of sequence {}", ranges[i].begin, ranges[i].sequence);
      }
    }
    return {};
  }

  // The memories of a kind.
  size_t count(program::BufferKind kind) const {
    switch (kind) {
      case program::BufferKind::kParameter:
        return program_.parameters.size();
      case program::BufferKind::kResult:
        return program_.results.size();
      case program::BufferKind::kConstant:
        return program_.constants.size();
      case program::BufferKind::kTemporary:
        break;
    }
    return program_.temporary_bytes > 0 ? 1 : 0;
  }

  Status plan(const backend::LibraryCallPlan& plan, const program::LibraryCallStep& call) const {
    const auto is_size = [](int64_t bytes) { return bytes >= 0 && bytes <= kMostBytes; };
    if (!is_size(plan.workspace_bytes) || !std::ranges::all_of(plan.packed_bytes, is_size) ||
        plan.packed_bytes.size() > call.operands.size()) {
      return bad("a plan of {} with sizes of operands that do not exist",
                 program::name_of(call.call));
    }
    return {};
  }

  // Checks that each kernel that is launched separately has a placement, and that there is a binary
  // if one runs on the device.
  Status launches() const {
    std::vector<program::StepRange> ranges;
    for (const CompiledSegment& each : compiled_.segments) ranges.push_back(each.range);
    const auto descends = [&](const program::Step& step) {
      return !compiled_.plans.contains(std::get<program::LibraryCallStep>(step.action).lowered);
    };
    Status status;
    program::for_each_step(program_, ranges, descends, [&](const program::Step& step) {
      const auto* launch = std::get_if<program::Launch>(&step.action);
      if (launch == nullptr || !status.ok()) return;
      const KernelPlacement placement = compiled_.kernel_placements[launch->kernel];
      const bool lacks = placement == KernelPlacement::kInlined ||
                         (placement == KernelPlacement::kDevice && compiled_.binary.empty());
      if (lacks) {
        status = bad("@{} is launched, but has no code", program_.kernels[launch->kernel].name);
      }
    });
    return status;
  }

  static constexpr int64_t kMostBytes = int64_t{1} << 50;

  const CompiledProgram& compiled_;
  const program::Program& program_;
};

}  // namespace

Status validate_compiled(const CompiledProgram& compiled) {
  return CompiledProgramValidator(compiled).run();
}

namespace {

// A line of a file, which may hold anything, for an error.
std::string quoted(std::string_view line) {
  constexpr size_t kMost = 120;
  if (line.size() <= kMost) return fmt::format("'{}'", line);
  return fmt::format("'{}…'", line.substr(0, whole_characters(line, kMost)));
}

// The first line of `from` that `other` lacks, from the given one on.
std::string_view line_without_equal(const std::vector<std::string>& from,
                                    const std::vector<std::string>& other, size_t first) {
  for (size_t i = first; i < from.size(); ++i) {
    if (std::ranges::find(other, from[i]) == other.end()) return from[i];
  }
  return {};
}

}  // namespace

Result<CompiledProgram> load_compiled_program(std::string_view bytes, std::string_view compiled_for,
                                              bool damaged_too) {
  TENON_ASSIGN(const serial::Unsealed file,
               serial::unseal(bytes, kCompiledProgramFormat, damaged_too));
  serial::ArchiveReader reader(file.payload, file.version);
  std::string was_compiled_for;
  reader(was_compiled_for);
  TENON_TRY(Status(reader.status()));
  TENON_TRY(check_compiled_for(was_compiled_for, compiled_for));
  CompiledProgram compiled;
  std::vector<SavedPlan> plans;
  reader(compiled.program, compiled.binary, compiled.kernel_placements, compiled.segments, plans);
  if (file.version >= 4) {
    reader(compiled.parameter_names, compiled.result_names, compiled.made_by);
  }
  if (reader.ok() && reader.rest() != 0) reader.fail("{} bytes after the program", reader.rest());
  TENON_TRY(Status(reader.status()));
  for (SavedPlan& each : plans) compiled.plans[each.lowered] = std::move(each.plan);
  TENON_TRY(program::validate(compiled.program));
  TENON_TRY(validate_compiled(compiled));
  return compiled;
}

Status check_compiled_for(std::string_view was, std::string_view is) {
  if (was == is) return {};
  const std::vector<std::string> before = lines_of(was);
  const std::vector<std::string> now = lines_of(is);
  const auto line = [](const std::vector<std::string>& lines, size_t i) {
    return i < lines.size() ? std::string_view(lines[i]) : std::string_view();
  };
  if (line(before, 0) != line(now, 0)) {
    return failed_precondition("it was compiled for the backend {}, and this is {}",
                               quoted(line(before, 0)), quoted(line(now, 0)));
  }
  if (line(before, 1) != line(now, 1)) {
    return failed_precondition(
        "it was compiled by version {} of the backend {}, and this is version {}",
        quoted(line(before, 1)), line(now, 0), quoted(line(now, 1)));
  }
  std::string_view there = line_without_equal(before, now, 2);
  std::string_view here = line_without_equal(now, before, 2);
  if (there.empty() && here.empty()) {
    // The same lines in another order, or another number of times.
    size_t i = 2;
    while (i < before.size() && line(before, i) == line(now, i)) ++i;
    there = line(before, i);
    here = line(now, i);
  }
  return failed_precondition("it was compiled for another target: {}; this device: {}",
                             there.empty() ? "without that" : quoted(there),
                             here.empty() ? "without that" : quoted(here));
}

}  // namespace tenon::runtime
