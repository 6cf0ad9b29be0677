#include "core/runtime/execution/inline_policy.h"

#include <algorithm>

#include "core/kernel/analysis/cost.h"
#include "core/runtime/executable.h"

namespace tenon::runtime {
namespace {

// Operations and bytes that take a millisecond or two. Up to this bound a caller that runs ahead
// gains nothing, and the memory of the results that it accumulates has left the caches.
constexpr double kBrief = 16e6;

// Whether the work of all steps is known, and brief.
bool is_brief(const CompiledProgram& compiled) {
  double work = 0;
  for (const program::Sequence& sequence : compiled.program.sequences) {
    for (const program::Step& step : sequence.steps) {
      if (const auto* launch = std::get_if<program::Launch>(&step.action)) {
        const kernel::Cost cost = kernel::cost_of(compiled.program.kernels[launch->kernel]);
        if (!cost.bounded) return false;
        work += cost.operations;
        work += static_cast<double>(cost.bytes_read + cost.bytes_written);
      } else if (const auto* copy = std::get_if<program::Copy>(&step.action)) {
        work += static_cast<double>(compiled.program.buffer(copy->destination).bytes());
      } else if (!std::holds_alternative<program::LibraryCallStep>(step.action)) {
        return false;
      }
    }
  }
  return work <= kBrief;
}

// Whether the work of some steps is unknown: they loop or branch.
bool is_unknown(const CompiledProgram& compiled) {
  const bool kernels = std::ranges::any_of(
      compiled.program.kernels, [](const auto& each) { return !kernel::cost_of(each).bounded; });
  return kernels || std::ranges::any_of(compiled.program.sequences, [](const auto& sequence) {
           return std::ranges::any_of(sequence.steps, [](const program::Step& step) {
             return std::holds_alternative<program::While>(step.action) ||
                    std::holds_alternative<program::Conditional>(step.action);
           });
         });
}

bool has_work_of_the_host(const CompiledProgram& compiled) {
  return std::ranges::find(compiled.kernel_placements, KernelPlacement::kHost) !=
             compiled.kernel_placements.end() ||
         std::ranges::any_of(compiled.program.sequences, [](const auto& sequence) {
           return std::ranges::any_of(sequence.steps, program::is_on_host);
         });
}

}  // namespace

void InlinePolicy::decide(const CompiledProgram& compiled, bool host_sees_memory) {
  basis_ = Basis::kNever;
  if (has_work_of_the_host(compiled)) return;
  if (is_brief(compiled)) {
    basis_ = Basis::kBrief;
  } else if (host_sees_memory && is_unknown(compiled)) {
    basis_ = Basis::kMeasured;
  }
}

}  // namespace tenon::runtime
