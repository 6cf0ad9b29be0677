// Helpers for lowering: a kernel's buffers, loop nests, the choice of the index type.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/lower_op.h"

namespace tenon::hlo::lower {

inline bool has_no_elements(const Type& type) { return element_count(type.dims()) == 0; }

/// The kernel that is being built, with an emitter that reads the op's inputs.
class KernelMaker {
 public:
  KernelMaker(const Instruction& op, const LoweredOp& lowered, std::string name,
              ElementType index_type);

  kernel::Builder& b() { return builder_; }
  ElementEmitter& e() { return emitter_; }

  /// Buffers, before the grid. `inputs` binds every input of the op.
  void inputs();
  kernel::MemoryId input(uint32_t index);
  /// An input as an array of other dimensions, with its elements in order; kNone unless it is in
  /// memory and an operand only once. Nothing may read it in its own dimensions then.
  kernel::MemoryId reshaped_input(Value value, const Dims& dims);
  kernel::MemoryId result(uint32_t index, kernel::Access access = kernel::Access::kOut);
  kernel::MemoryId temporary(uint32_t index, kernel::Access access);
  kernel::MemoryId constant(uint32_t index);

  const std::vector<BufferRef>& buffers() const { return buffers_; }

 private:
  kernel::MemoryId add(BufferRef::BufferRefKind kind, uint32_t index, std::string name,
                       const Type& type, kernel::Access access);

  const Instruction& op_;
  const LoweredOp& lowered_;
  kernel::Builder builder_;
  ElementEmitter emitter_;
  std::vector<BufferRef> buffers_;
};

/// Appends the kernel that `body` builds to `lowered`: with 32-bit indices if the verifier proves
/// that they fit, else with 64-bit ones (K10). Unused buffers are removed.
Status add_kernel(LoweredOp& lowered, const Instruction& op, std::string_view suffix,
                  const std::function<void(KernelMaker&)>& body,
                  std::vector<uint64_t> scalars = {});

/// The same, unless elements that `body` provided were emitted elsewhere too
/// (ElementEmitter::strayed), or the kernel exceeds a limit on loops or memory (K0): then appends
/// nothing and returns false.
using Taken = Result<bool>;
Taken try_kernel(LoweredOp& lowered, const Instruction& op, std::string_view suffix,
                 const std::function<void(KernelMaker&)>& body, std::vector<uint64_t> scalars = {});

/// Initialises result `r` of `op` with `value`: by a copy, or by a kernel if the value is not in
/// memory.
Status begin_as(LoweredOp& lowered, const Instruction& op, uint32_t r, Value value,
                TuningParameters& tuning);

/// Calls `body` where every position is within its size: under a condition if a tile may extend
/// beyond it. Positions are (index, size, tile).
struct TilePlace {
  ValueId index;
  int64_t size;
  int64_t tile;
};
ValueId is_inside(kernel::Builder& b, const std::vector<TilePlace>& places);
/// Whether a condition is known to hold; one that is known not to is a constant as well.
inline bool is_true(const kernel::Builder& b, ValueId condition) {
  return b.kernel().is_constant(condition) && b.kernel().value(condition).bits != 0;
}
/// Calls `whole` for tiles that are within their sizes in each dimension, and `part` for those that
/// reach beyond one, under a condition that is the same for all lanes if there are tiles of both
/// kinds. The index of each place is that of the tile's first element.
void if_whole(kernel::Builder& b, const std::vector<TilePlace>& places,
              const std::function<void()>& whole, const std::function<void()>& part);
void if_inside(kernel::Builder& b, const std::vector<TilePlace>& places,
               const std::function<void()>& body);
/// The number of tiles of size `tile` that cover `size`.
constexpr int64_t tiles_of(int64_t size, int64_t tile) { return size / tile + (size % tile != 0); }

/// The boxes of indices of workgroups: all by one loop, with a condition for those that reach
/// beyond an array; or whole ones by a loop of their own, which a CPU transposes in registers.
enum class Boxes { kAll, kWholeApart };

/// Makes the grid and a lanes loop that together call `body` once for each index of `dims`.
void for_each_index(kernel::Builder& b, const Dims& dims, TuningParameters& tuning,
                    const std::function<void(const Values&)>& body, Boxes boxes = Boxes::kAll);

/// A name for a kernel of `op`: "add", "reduce_sum".
std::string kernel_name(const Instruction& op);
/// "stablehlo.add at model.mlir:3:8"; for a fusion "stablehlo.add + stablehlo.tanh at …".
std::string label_of(const Instruction& op);

}  // namespace tenon::hlo::lower
