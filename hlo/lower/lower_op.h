// The lowering of one instruction (an op, or a fusion of any) to kernels.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/program/program.h"
#include "hlo/ir/instruction.h"
#include "hlo/lower/cost_model.h"
#include "hlo/lower/tuning_parameters.h"

namespace tenon::hlo::lower {

/// The array that a kernel's buffer stands for.
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

/// Kernels to be launched one after the other.
struct LoweredOp {
  std::vector<Value> inputs;  ///< Operands and captured values that lie in memory.
  std::vector<Shape> temporaries;
  std::vector<Literal> constants;
  /// Results that begin as a copy of an input: (result, input).
  std::vector<std::pair<uint32_t, uint32_t>> copies;
  std::vector<LoweredLaunch> launches;
};

/// The target as lowering sees it: limits that it observes, and costs by which it chooses.
struct LowerLimits {
  int64_t scratch_bytes = 48 << 10;
  int64_t alignment = program::kAlignment;  ///< Alignment of buffers, in bytes.
  bool fma = true;  ///< Contractions of floats may use it; without it their products are rounded.
  bool private_memory = true;  ///< Else it takes scratch.
  int64_t vector_bytes = 16;   ///< Size of a register, or of one access of a lane.
  CostModel cost;
};

/// Kernels for `op`, a primitive op whose results are arrays. An op without a lowering is
/// an error of kUnimplemented that names it.
Result<LoweredOp> lower_op(const Instruction& op, TuningParameters& tuning,
                           const LowerLimits& limits = {});

/// Kernels of ops that were lowered before, so that lowering one Module again with other limits for
/// a few ops makes those of these ops alone. One Module, one set of parameters.
///
/// Thread-safety: none.
class LoweringCache {
 public:
  /// lower_op, once for an op and a level, which stands for its limits.
  Result<LoweredOp> lower(const Instruction& op, int level, TuningParameters& tuning,
                          const LowerLimits& limits);
  /// Ops that were lowered, as against those that were found.
  int64_t lowered() const { return lowered_; }

 private:
  std::map<std::pair<const Instruction*, int>, Result<LoweredOp>> known_;
  int64_t lowered_ = 0;
};

/// Whether a constant is written into kernels where it is used: one number, repeated.
bool is_inline_constant(const Instruction& op);

}  // namespace tenon::hlo::lower
