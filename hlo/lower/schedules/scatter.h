// The updates of a scatter, as operations of a kernel.
#pragma once

#include <functional>
#include <vector>

#include "hlo/lower/elements/emitter.h"

namespace tenon::hlo::lower {

/// Combines updates of `op`, a scatter whose region has element rules, into memories with its
/// results so far.
class ScatterEmitter {
 public:
  explicit ScatterEmitter(const Instruction& op);

  /// Sizes of the updates: of the dimensions that enumerate index vectors, and of the window.
  const Dims& batch() const { return batch_; }
  const Dims& window() const { return window_; }
  /// Whether index vectors move windows along their dimension `i`.
  bool is_moved(size_t i) const;

  /// Calls `body` with the input index and the update of a window position, if it is inside.
  void at_window(ElementEmitter& e, const Values& batch, const Values& window,
                 const std::function<void(const Values& to, const Values& update)>& body) const;
  /// Combines one element.
  void combine(ElementEmitter& e, const std::vector<kernel::MemoryId>& results, const Values& to,
               const Values& update) const;
  /// Combines the windows serially; of each, the positions that `window_of` gives for `lanes`.
  void in_order(ElementEmitter& e, const std::vector<kernel::MemoryId>& results, const Dims& lanes,
                const std::function<Values(const Values& lane)>& window_of) const;

 private:
  Values window_start(ElementEmitter& e, const Values& batch) const;
  ValueId near(ElementEmitter& e, ValueId value, size_t d) const;
  Values update_index(const Values& batch, const Values& window) const;

  const Instruction& op_;
  size_t count_;
  const ScatterDims& dims_;
  const Type& input_;
  const Type& indices_;
  const Type& updates_;
  bool whole_windows_;
  Dims batch_dims_;         // of the updates
  Dims window_input_dims_;  // of the inputs
  Dims batch_;              // sizes
  Dims window_;
};

}  // namespace tenon::hlo::lower
