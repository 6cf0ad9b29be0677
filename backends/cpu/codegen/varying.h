// Divergence analysis: which values differ from lane to lane when the iterations of a loop become
// the lanes of a vector.
#pragma once

#include <map>
#include <vector>

#include "core/kernel/ir/kernel.h"

namespace tenon::cpu {

/// The varying values within a `lanes`, `reduce` or `scan` statement whose indices `lanes` differ
/// in each lane.
class Varying {
 public:
  Varying(const kernel::Kernel& kernel, const kernel::Node& statement,
          const std::vector<kernel::ValueId>& lanes);

  /// Whether `value` may differ between lanes.
  bool operator()(kernel::ValueId value) const { return varies_[value]; }
  /// Whether the lanes can run the blocks together: no loop has a varying iteration count, and
  /// there is no atomic and no statement of a workgroup.
  bool together() const { return together_; }
  /// Bytes of the widest varying number that is not an index; 0 if there is none.
  int64_t widest() const { return widest_; }
  /// The same without those that are so few that they may take several registers.
  int64_t widest_of_many() const;
  /// The number of operations within.
  size_t nodes() const { return nodes_; }
  /// Whether there are math functions that need most registers for one vector.
  bool has_wide_functions() const { return wide_functions_ > 0; }
  /// Whether there are math functions, all of them chains of few operations: those of several
  /// vectors overlap.
  bool has_short_functions() const { return functions_ > 0 && long_functions_ == 0; }
  /// The number of stores, and of loads that differ from lane to lane.
  size_t accesses() const { return accesses_; }

 private:
  void block(kernel::BlockId id);
  void node(const kernel::Node& node);
  void reduce(const kernel::Node& node);
  void scan(const kernel::Node& node);
  void loop(const kernel::Node& node);
  bool any(const std::vector<kernel::ValueId>& values) const;
  void set(kernel::ValueId value, bool varies);
  /// States that the operands of the yield of block `from` also flow to `values`.
  void flow(kernel::BlockId from, const std::vector<kernel::ValueId>& values, size_t first,
            bool varies);

  const kernel::Kernel& kernel_;
  std::vector<bool> varies_;
  bool changed_ = false;
  bool together_ = true;
  int64_t widest_ = 0;
  std::map<int64_t, size_t> numbers_;  ///< How many numbers have so many bytes.
  size_t nodes_ = 0;
  size_t functions_ = 0;
  size_t long_functions_ = 0;
  size_t wide_functions_ = 0;
  size_t accesses_ = 0;
};

}  // namespace tenon::cpu
