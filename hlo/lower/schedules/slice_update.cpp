// dynamic_update_slice: the result begins as the operand, then the slice alone is stored. If the
// operand has no later readers, coalescing removes the copy (hlo/buffers/coalesce.h), and only the
// work of the slice is left, as a loop that stacks its results needs.
#include <algorithm>

#include "hlo/lower/schedules/schedules.h"
#include "hlo/lower/uses.h"

namespace tenon::hlo::lower {
namespace {

// The value outside of the fusion that `value` stands for; null if it is computed within.
Value outside(const FusedOp& fused, Value value) {
  if (fused.op.code() != OpCode::kFusion) return value;
  const Computation& body = fused.op.region(0);
  for (size_t i = 0; i < body.parameter_count(); ++i) {
    if (body.parameter(i) == value) return fused.op.operand(i);
  }
  return {};
}

}  // namespace

Taken lower_update(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                   const LowerLimits&) {
  const Instruction* const update = fused.results.size() == 1 ? fused.results[0].def : nullptr;
  if (update == nullptr || update->code() != OpCode::kDynamicUpdateSlice ||
      std::ranges::find(fused.inner, update) == fused.inner.end()) {
    return false;
  }
  const Value whole = outside(fused, update->operand(0));
  const auto input = std::ranges::find(lowered.inputs, whole);
  if (!whole || input == lowered.inputs.end()) return false;
  if (tuning.choose("update_slice", ends_at(whole, fused.op) ? 1 : 0, {0, 1}) == 0) return false;
  const Dims& sizes = update->operand_type(1).dims();
  if (element_count(sizes) != 0) {
    TENON_ASSIGN(const bool taken, try_kernel(lowered, fused.op, "", [&](KernelMaker& maker) {
                   maker.inputs();
                   const kernel::MemoryId result = maker.result(0, kernel::Access::kInOut);
                   for_each_index(maker.b(), sizes, tuning, [&](const Values& index) {
                     Values to = clamped_starts(maker.e(), *update, 2, whole.type().dims(), sizes);
                     for (size_t i = 0; i < to.size(); ++i) to[i] = maker.b().add(to[i], index[i]);
                     maker.e().store(maker.e().element(update->operand(1), index), result, to);
                   });
                 }));
    if (!taken) return false;
  }
  lowered.copies.emplace_back(0, static_cast<uint32_t>(input - lowered.inputs.begin()));
  return true;
}

}  // namespace tenon::hlo::lower
