// Intervals of integer values, computed from the extents of the enclosing loops; they prove that
// indices fit (K7, K10).
#pragma once

#include <vector>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// Minimum and maximum, both inclusive.
struct IntegerRange {
  __int128 low = 0;
  __int128 high = 0;
};

class Ranges {
 public:
  /// Computes the ranges of all values of a well-formed kernel.
  explicit Ranges(const Kernel& kernel);

  const IntegerRange& of(ValueId value) const { return ranges_[value]; }
  /// Whether the operation that defines `value` may wrap around.
  bool may_overflow(ValueId value) const { return overflows_[value]; }

 private:
  void block(BlockId id);
  void node(const Node& node);
  void arguments(const Node& node);
  IntegerRange scalar(const Node& node) const;
  void set(ValueId value, const IntegerRange& range);

  const Kernel& kernel_;
  std::vector<IntegerRange> ranges_;
  std::vector<bool> overflows_;
};

/// All values of an integer type or pred; an unbounded range for a float.
IntegerRange range_of_type(ElementType type);

}  // namespace tenon::kernel
