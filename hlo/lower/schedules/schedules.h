// hlo/lower/schedules/: schedules: the ways in which a fusion becomes kernels.
//
// Schedules: the ways in which a fusion becomes kernels, a file each.
//
// clang-format off
//   one element a lane           lower_op.cpp           anything
//   a row a workgroup or a lane  row_fusion.cpp         softmax, norms: row reductions, ops around
//   two stages                   two_stage.cpp          a large reduction to few results
//   tiles through scratch        tiled_transpose.cpp    elements that are read across their rows
//   tiles of accumulators        tiled_dot.cpp          a dot_general with the ops around it
//   the slice alone              slice_update.cpp       a dynamic_update_slice of a dead operand
// clang-format on
//
// Each takes a fusion (a single op is the smallest) if it fits, by choices of its TuningParameters;
// a fusion that none takes is lowered one element a lane. All of them emit by the rules of
// emitter.h and only provide some values from memory.
#pragma once

#include "hlo/lower/kernel_maker.h"

namespace tenon::hlo::lower {

/// An op to be lowered, looked into if it is a fusion.
struct FusedOp {
  explicit FusedOp(const Instruction& instruction);

  const Instruction& op;
  /// The ops that are computed: those of the fusion's body in order, without constants, or `op`
  /// itself.
  std::vector<const Instruction*> inner;
  /// The values in `inner` (or parameters of the body) that are the results of `op`.
  std::vector<Value> results;

  /// The only one of `inner` with this code, or null.
  const Instruction* only(OpCode code) const;
  /// Whether any of `inner` combines elements (reduces, contracts, windows), `except` apart.
  bool combines(const Instruction* except) const;
};

// Each returns whether it took the op; if not, `lowered` is as before.

Taken lower_row_fusion(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                       const LowerLimits& limits);
Taken lower_in_two_stages(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                          const LowerLimits& limits);
Taken lower_tiled_transpose(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                            const LowerLimits& limits);
Taken lower_update(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                   const LowerLimits& limits);
Taken lower_tiled_dot(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                      const LowerLimits& limits);

/// Stores the results numbered `which` at `index`.
void store_results(KernelMaker& maker, const FusedOp& fused, const std::vector<uint32_t>& which,
                   const std::vector<kernel::MemoryId>& memories, const Values& index);
/// Serial loops over `dims` around `body`.
void for_each_serially(kernel::Builder& b, const Dims& dims,
                       const std::function<void(const Values&)>& body);

}  // namespace tenon::hlo::lower
