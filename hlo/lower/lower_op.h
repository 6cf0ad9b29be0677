// The lowering of one instruction (an op, or any fusion) to kernels.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/program/program.h"
#include "hlo/ir/instruction.h"
#include "hlo/lower/cost_model.h"
#include "hlo/lower/tuning_parameters.h"

namespace tenon::hlo::lower {

/// The array for a kernel's buffer.
struct BufferRef {
  enum class BufferRefKind : uint8_t { kInput, kResult, kTemporary, kConstant };
  BufferRefKind kind = BufferRefKind::kInput;
  uint32_t index = 0;
};

struct LoweredLaunch {
  kernel::Kernel kernel;
  std::vector<BufferRef> buffers;
  std::vector<uint64_t> scalars;
};

/// Kernels to be launched in order.
struct LoweredOp {
  std::vector<Value> inputs;  ///< Operands and captured values that must be in memory.
  std::vector<Shape> temporaries;
  std::vector<Literal> constants;
  /// Results that are initialised with a copy of an input: (result, input).
  std::vector<std::pair<uint32_t, uint32_t>> copies;
  std::vector<LoweredLaunch> launches;
};

/// The target as lowering sees it: limits that it must observe, and costs by which it chooses.
struct LowerLimits {
  int64_t scratch_bytes = 48 << 10;
  int64_t alignment = program::kAlignment;  ///< Alignment of buffers, in bytes.
  bool fma = true;  ///< Float contractions may use it; without it their products are rounded.
  bool private_memory = true;      ///< Without it, scratch is used.
  bool tiles = false;              ///< The target has `contract`, with sums in registers.
  bool lays_out_constants = true;  ///< Constant factors may be stored as tiles read them.
  int64_t vector_bytes = 16;       ///< Size of a register, or of one access of a lane.
  CostModel cost;
};

/// Makes kernels for `op`, a primitive op whose results are arrays. An op without a lowering is an
/// error of kUnimplemented that names it.
Result<LoweredOp> lower_op(const Instruction& op, TuningParameters& tuning,
                           const LowerLimits& limits = {});

/// Kernels of ops that were lowered before, so that lowering a Module again with other limits for a
/// few ops makes new kernels only for these ops. For one Module and one set of parameters.
///
/// Thread-safety: not thread-safe.
class LoweringCache {
 public:
  /// lower_op, once per op and level; the level determines the limits.
  Result<LoweredOp> lower(const Instruction& op, int level, TuningParameters& tuning,
                          const LowerLimits& limits);
  /// The number of ops that were lowered, not found in the cache.
  int64_t lowered() const { return lowered_; }

 private:
  std::map<std::pair<const Instruction*, int>, Result<LoweredOp>> known_;
  int64_t lowered_ = 0;
};

/// Whether the result of an op that moves elements has those of its operand in the same order: a
/// reshape, or a broadcast that adds only dimensions of one element.
bool keeps_order(const Instruction& op);

/// Whether a constant is written into kernels where it is used: a splat.
bool is_inline_constant(const Instruction& op);

}  // namespace tenon::hlo::lower
