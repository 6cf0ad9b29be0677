// Which outputs of a kernel may take the memory of which inputs (K4).
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/kernel/ir/kernel.h"

namespace tenon::kernel {

/// The pairs (out, in) of a kernel's buffers for which K4 is proved: `out` may be declared `over`
/// `in`. Each element of `in` is loaded only by the iteration that stores the corresponding element
/// of `out`, and before the store. Buffers with different element types, dimensions or strides
/// never form a pair. The analysis is conservative: other pairs may satisfy K4 too.
///
/// There may be as many pairs as outputs times inputs, so they are computed on request. Analysing a
/// kernel and asking for the inputs of all its outputs takes time proportional to its size.
class InPlacePairs {
 public:
  /// The maximum number of inputs that inputs_of() considers for one store to the output.
  static constexpr size_t kMostInputs = 64;

  /// The kernel must outlive the object.
  explicit InPlacePairs(const Kernel& kernel);

  bool contains(MemoryId out, MemoryId in) const;
  /// Inputs that `out` may be over, ascending: all of them if the kernel has at most kMostInputs
  /// inputs. If more inputs are loaded before a store to `out`, only those are considered whose
  /// position in the order of loads is nearest to that of `out` among the outputs, so that
  /// different outputs find different inputs.
  std::vector<MemoryId> inputs_of(MemoryId out) const;
  /// The number of accesses compared so far, which tests compare with the size of the kernel.
  int64_t work() const { return work_; }

 private:
  /// A load or store of a buffer.
  struct BufferAccess {
    size_t order = 0;  ///< Position in the text.
    BlockId block = 0;
    bool repeated = false;  ///< Within a loop inside one iteration.
    std::vector<ValueId> place;
  };
  struct BufferAccesses {
    std::vector<BufferAccess> loads;
    std::vector<BufferAccess> stores;
    bool otherwise = false;  ///< Also accessed by a copy, contract or atomic.
    size_t layout = 0;       ///< Index of its element type, dimensions and strides.
    size_t rank = 0;         ///< Its index among the outputs of this layout.
  };
  /// The layout of an input, whether it is loaded, and if so the indices of its first load.
  using Key = std::tuple<size_t, bool, std::vector<ValueId>>;

  void walk(BlockId block, bool repeated);
  void touch(const Node& node, MemoryId memory, BlockId block, bool repeated);
  void number_layouts();
  size_t last_load(MemoryId input) const;
  bool is_within(BlockId block, BlockId outer) const;
  void collect(const Key& key, MemoryId out, size_t before, std::vector<MemoryId>& found) const;

  const Kernel& kernel_;
  std::vector<BufferAccesses> of_;
  std::vector<BlockId> parents_;
  std::map<std::pair<ElementType, uint64_t>, ValueId> constants_;  // The first of equal ones.
  std::map<Key, std::vector<MemoryId>> inputs_;                    // By the last of their loads.
  size_t order_ = 0;
  mutable int64_t work_ = 0;
};

}  // namespace tenon::kernel
