#include "backends/cpu/segment_plan.h"

namespace tenon::cpu {

using program::SequenceId;
using program::Step;

SegmentPlan::SegmentPlan(const program::Program& program, const SegmentContractions& contractions,
                         const std::vector<CpuKernelCode>& kernels, int64_t threads)
    : program_(program), contractions_(contractions), kernels_(kernels), threads_(threads) {
  count_launches();
  plan(0);
}

void SegmentPlan::count_launches() {
  launches_.resize(program_.kernels.size());
  for (const program::Sequence& sequence : program_.sequences) {
    for (const Step& step : sequence.steps) {
      const auto* launch = std::get_if<program::Launch>(&step.action);
      if (launch != nullptr) ++launches_[launch->kernel];
    }
  }
}

const std::vector<uint32_t>& SegmentPlan::parts_of(SequenceId sequence) const {
  static const std::vector<uint32_t> kNone;
  const auto found = parts_of_.find(sequence);
  return found == parts_of_.end() ? kNone : found->second;
}

const std::vector<EpilogueLaunch>& SegmentPlan::epilogue_at(SequenceId sequence,
                                                            size_t step) const {
  static const std::vector<EpilogueLaunch> kNone;
  const auto found = epilogues_.find({sequence, step});
  return found == epilogues_.end() ? kNone : found->second;
}

// The number of nodes that the sequence adds to its function: all of its nodes, or the calls of its
// parts.
size_t SegmentPlan::plan(SequenceId sequence) {
  constexpr size_t kCall = 4;
  find_epilogues(sequence);
  const std::vector<Step>& steps = program_.sequences[sequence].steps;
  std::vector<size_t> nodes;
  size_t all = 0;
  for (const Step& step : steps) all += nodes.emplace_back(nodes_of(step));
  if (all <= kMostNodes || steps.size() < 2) return all;
  std::vector<uint32_t>& cut = parts_of_[sequence];
  const auto count = static_cast<uint32_t>(steps.size());
  for (uint32_t begin = 0; begin < count;) {
    uint32_t end = begin;
    for (size_t sum = 0; end < count && (end == begin || sum + nodes[end] <= kMostNodes); ++end) {
      sum += nodes[end];
    }
    cut.push_back(static_cast<uint32_t>(parts_.size()));
    parts_.push_back({sequence, begin, end});
    begin = end;
  }
  return kCall * cut.size();
}

size_t SegmentPlan::nodes_of(const Step& step) {
  constexpr size_t kCall = 8;  // Also for other steps of a few instructions.
  if (const auto* launch = std::get_if<program::Launch>(&step.action)) {
    const uint32_t kernel = launch->kernel;
    const bool is_inlined = is_in_place(kernel) && !is_shared(kernel);
    return kCall + launch->buffers.size() +
           (is_inlined ? program_.kernels[kernel].nodes.size() : 0);
  }
  if (const auto* loop = std::get_if<program::While>(&step.action)) {
    const size_t condition = plan(loop->condition);
    return kCall + condition + plan(loop->body);
  }
  if (const auto* branch = std::get_if<program::Conditional>(&step.action)) {
    size_t nodes = kCall;
    for (const SequenceId each : branch->branches) nodes += kCall + plan(each);
    return nodes;
  }
  const auto* call = std::get_if<program::LibraryCallStep>(&step.action);
  return call == nullptr || contractions_.contains(call) ? kCall : plan(call->lowered);
}

void SegmentPlan::find_epilogues(SequenceId id) {
  const program::Sequence& sequence = program_.sequences[id];
  for (size_t s = 0; s < sequence.steps.size(); ++s) {
    if (is_epilogue(id, s)) continue;
    std::vector<EpilogueLaunch> epilogue = epilogue_behind(sequence, s);
    if (epilogue.empty()) continue;
    for (const EpilogueLaunch& each : epilogue) in_epilogue_.insert({id, each.step});
    epilogues_[{id, s}] = std::move(epilogue);
  }
}

// The epilogue of a contraction. Empty unless the result is too large for a near cache and, if the
// work should use several threads, there are enough groups of rows for all of them.
std::vector<EpilogueLaunch> SegmentPlan::epilogue_behind(const program::Sequence& sequence,
                                                         size_t step) const {
  const auto* call = std::get_if<program::LibraryCallStep>(&sequence.steps[step].action);
  const auto found = call == nullptr ? contractions_.end() : contractions_.find(call);
  if (found == contractions_.end() || !found->second.rows) return {};
  constexpr int64_t kLarge = 1 << 20;
  const RowGroups& rows = *found->second.rows;
  if (rows.groups() < 2 || rows.turns * rows.rows * rows.row_bytes < kLarge) return {};
  std::vector<EpilogueLaunch> epilogue = epilogue_launches(program_, sequence, step, rows);
  bool several = found->second.kernel().workgroups > found->second.kernel().grain;
  for (const EpilogueLaunch& each : epilogue) {
    const auto& launch = std::get<program::Launch>(sequence.steps[each.step].action);
    several |= kernels_[launch.kernel].workgroups > kernels_[launch.kernel].grain;
  }
  if (several && rows.groups() < 2 * threads_) return {};
  return epilogue;
}

}  // namespace tenon::cpu
