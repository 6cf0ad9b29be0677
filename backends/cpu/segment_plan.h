// How a Program becomes functions: the steps of each function, and the launches that follow a
// contraction row by row.
//
// Code generators take more than linear time per function, so a long sequence of steps is split
// into parts, each a function of its own. A short sequence becomes inline code.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "backends/cpu/code.h"
#include "backends/cpu/contraction/epilogue.h"
#include "core/program/segment.h"

namespace tenon::cpu {

/// A library call with separate code.
struct SegmentContraction {
  std::shared_ptr<const CpuCode> code;
  std::optional<RowGroups> rows;
  const CpuKernelCode& kernel() const { return code->kernels[0]; }
};
using SegmentContractions = std::map<const program::LibraryCallStep*, SegmentContraction>;

class SegmentPlan {
 public:
  /// Kernels with more nodes are compiled in other modules, several in each, by several threads.
  static constexpr size_t kMostNodesInPlace = 150;
  /// The approximate limit for a function: from some thousands of nodes on LLVM's time grows with
  /// the square of their number.
  static constexpr size_t kMostNodes = 600;
  /// The most nodes of a kernel of which each of several launches has a copy.
  static constexpr size_t kMostNodesRepeated = 50;

  /// `kernels`: the result of describe() for each kernel. All arguments must outlive the plan.
  SegmentPlan(const program::Program& program, const SegmentContractions& contractions,
              const std::vector<CpuKernelCode>& kernels, int64_t threads);

  /// The ranges of steps that become functions.
  const std::vector<program::StepRange>& parts() const { return parts_; }
  /// Indices of the parts into which a sequence is split, in order; empty if it is not split.
  const std::vector<uint32_t>& parts_of(program::SequenceId sequence) const;
  /// Whether the kernel is compiled in the module of each function that launches it, so that small
  /// kernels can be inlined.
  bool is_in_place(uint32_t kernel) const {
    return program_.kernels[kernel].nodes.size() <= kMostNodesInPlace;
  }
  /// Whether copies of the kernel in the place of its launches would dominate the code, or take
  /// long to compile: a pass of a sort has many times the nodes of a call.
  bool is_shared(uint32_t kernel) const {
    const size_t nodes = program_.kernels[kernel].nodes.size();
    return launches_[kernel] * nodes > kMostNodes ||
           (launches_[kernel] > 1 && nodes > kMostNodesRepeated);
  }
  /// The launches that run with the contraction of this step; empty if there are none.
  const std::vector<EpilogueLaunch>& epilogue_at(program::SequenceId sequence, size_t step) const;
  /// Whether the step runs with a contraction before it.
  bool is_epilogue(program::SequenceId sequence, size_t step) const {
    return in_epilogue_.contains({sequence, step});
  }

 private:
  using Place = std::pair<program::SequenceId, size_t>;

  void count_launches();
  size_t plan(program::SequenceId sequence);
  size_t nodes_of(const program::Step& step);
  void find_epilogues(program::SequenceId sequence);
  std::vector<EpilogueLaunch> epilogue_behind(const program::Sequence& sequence, size_t step) const;

  const program::Program& program_;
  const SegmentContractions& contractions_;
  const std::vector<CpuKernelCode>& kernels_;
  const int64_t threads_;
  std::vector<size_t> launches_;  // By kernel.
  std::vector<program::StepRange> parts_;
  std::map<program::SequenceId, std::vector<uint32_t>> parts_of_;
  std::map<Place, std::vector<EpilogueLaunch>> epilogues_;
  std::set<Place> in_epilogue_;
};

}  // namespace tenon::cpu
