// hlo/lower/schedules/scattering/: scatters, alone and with what computes their indices and
// updates.
//
// The updates of a scatter, as operations of a kernel.
#pragma once

#include <functional>
#include <utility>
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

  /// The index in the updates of a window position.
  Values update_index(const Values& batch, const Values& window) const;
  /// Combines an element of a window, from its index in the input and in the updates.
  using Body = std::function<void(const Values& to, const Values& update)>;
  /// Calls `body` for a window position, if it is inside.
  void at_window(ElementEmitter& e, const Values& batch, const Values& window,
                 const Body& body) const;
  /// The index in the input of a window position, and whether it is inside; if it is not, the index
  /// is any.
  std::pair<Values, ValueId> place(ElementEmitter& e, const Values& batch,
                                   const Values& window) const;
  /// Combines one element.
  void combine(ElementEmitter& e, const std::vector<kernel::MemoryId>& results, const Values& to,
               const Values& update) const;
  /// Calls `body` for the windows of `batches`, numbers of index vectors, serially; of each, for
  /// the positions that `window_of` gives for `lanes`. Outside lanes loops.
  struct ValueRange {
    ValueId begin;
    ValueId end;
  };
  void in_order(ElementEmitter& e, const ValueRange& batches, const Dims& lanes,
                const std::function<Values(const Values& lane)>& window_of, const Body& body) const;
  /// The same for all windows.
  ValueRange all_batches(kernel::Builder& b) const {
    return {b.index(0), b.index(element_count(batch_))};
  }

 private:
  /// Where a window lies in the input.
  struct ScatterWindow {
    Values start;
    /// Whether it is inside, along the dimensions where all of its positions are or none.
    ValueId inside;
  };
  ScatterWindow window_at(ElementEmitter& e, const Values& batch) const;
  int64_t window_size(size_t d) const;
  static std::pair<ValueId, ValueId> in_dimension(ElementEmitter& e, ValueId value, int64_t size);
  ValueId near(ElementEmitter& e, ValueId value, size_t d) const;
  std::pair<Values, ValueId> position(kernel::Builder& b, const ScatterWindow& found,
                                      const Values& window) const;
  void at_position(ElementEmitter& e, const ScatterWindow& found, const Values& batch,
                   const Values& window, const Body& body) const;

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
