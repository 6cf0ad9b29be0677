// What differs from lane to lane when the iterations of a loop become the lanes of a vector.
#pragma once

#include <vector>

#include "core/kernel/ir/kernel.h"

namespace tenon::cpu {

/// Within `lanes` or a `reduce`, whose index `lane` is another one in each lane.
class Varying {
 public:
  Varying(const kernel::Kernel& kernel, const kernel::Node& statement, kernel::ValueId lane);

  /// Whether the lanes may have different values of it.
  bool operator()(kernel::ValueId value) const { return varies_[value]; }
  /// Whether the lanes can go through the blocks together: no loop whose number of turns varies, no
  /// atomic, nothing that belongs to a workgroup.
  bool together() const { return together_; }
  /// Bytes of the widest number that varies and is no index; 0 if none is.
  int64_t widest() const { return widest_; }
  /// Operations within.
  size_t nodes() const { return nodes_; }

 private:
  void block(kernel::BlockId id);
  void node(const kernel::Node& node);
  void reduce(const kernel::Node& node);
  void loop(const kernel::Node& node);
  bool any(const std::vector<kernel::ValueId>& values) const;
  void set(kernel::ValueId value, bool varies);
  /// What a block's yield gives also goes to `values`.
  void flow(kernel::BlockId from, const std::vector<kernel::ValueId>& values, size_t first,
            bool varies);

  const kernel::Kernel& kernel_;
  std::vector<bool> varies_;
  bool changed_ = false;
  bool together_ = true;
  int64_t widest_ = 0;
  size_t nodes_ = 0;
};

}  // namespace tenon::cpu
