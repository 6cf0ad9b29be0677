// How an integer value changes with a loop's index: tells which loop runs along memory.
#pragma once

#include <map>
#include <optional>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// The change of values when one index grows by 1 and everything else stays.
class Slopes {
 public:
  /// `index` is an argument of a block.
  Slopes(const Kernel& kernel, ValueId index) : kernel_(kernel), index_(index) {}

  /// 0: the value does not depend on the index. Nothing: it is no linear function of the index, as
  /// far as sums, differences and products by constants tell.
  std::optional<int64_t> of(ValueId value);
  /// The same for the place in memory of the element that a load, store or atomic accesses, in
  /// elements.
  std::optional<int64_t> of_place(const Node& access);

 private:
  std::optional<int64_t> compute(const Node& node);

  const Kernel& kernel_;
  const ValueId index_;
  std::map<ValueId, std::optional<int64_t>> known_;
};

}  // namespace tenon::kernel
