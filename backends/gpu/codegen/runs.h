// Runs: whether a thread may take several adjacent iterations of a lanes loop, along the last
// dimension, so that each of its loads and stores is one access.
//
// Thread-safety: not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/kernel/analysis/ranges.h"
#include "core/kernel/ir/kernel.h"

namespace tenon::gpu {

/// Analysis of a lanes loop, or of the leaves of a reduction: the width of runs, and the values
/// that are the same in all iterations of a run.
class AccessRuns {
 public:
  /// The widest run of `node`, along its last dimension: 16 bytes of the widest moved element, or
  /// half of that …; 1 if memory is accessed in any other way.
  AccessRuns(const kernel::Kernel& kernel, const kernel::Ranges& ranges, const kernel::Node& node);

  int64_t width() const { return width_; }
  /// Disables runs.
  void take_one_by_one() { width_ = 1; }
  /// Whether `value` is the same in all iterations of a run. Values from outside always are.
  bool same(kernel::ValueId value) const { return fact(value).growth == 0; }
  /// Whether its iterations contain loops.
  bool has_loops() const { return has_loops_; }

 private:
  /// A value increases by `growth` in each next iteration of a run (unknown if `growth` is empty);
  /// in the first iteration it is a multiple of `divisor`.
  struct Fact {
    std::optional<int64_t> growth = 0;
    int64_t divisor = 1;
  };

  bool try_width(const kernel::Node& node, int64_t width);
  bool block(kernel::BlockId id);
  bool node(const kernel::Node& n);
  bool access(const kernel::Node& n);
  void loop(const kernel::Node& n);
  void scalar(const kernel::Node& n);
  Fact result(const kernel::Node& n) const;
  bool splits_at_runs(const kernel::Node& n) const;
  Fact fact(kernel::ValueId value) const;
  Fact outside(kernel::ValueId value) const;
  int64_t widest(kernel::BlockId id) const;
  size_t size(kernel::BlockId id) const;

  const kernel::Kernel& kernel_;
  const kernel::Ranges& ranges_;
  int64_t width_ = 1;
  bool has_loops_ = false;
  bool moves_neighbours_ = false;
  std::map<kernel::ValueId, Fact> facts_;
  mutable std::map<kernel::ValueId, Fact> outside_;
  std::map<kernel::ValueId, const kernel::Node*> loops_;  // By their induction variables.
};

}  // namespace tenon::gpu
