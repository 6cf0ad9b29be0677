// dynamic_update_slice: the result is initialised with the operand, then only the slice is stored.
// If the operand has no later readers, coalescing removes the copy (hlo/buffers/coalesce.h), and
// only the work of the slice remains, as a loop that stacks its results needs.
#include <algorithm>

#include "hlo/lower/schedules/schedules.h"
#include "hlo/lower/uses.h"

namespace tenon::hlo::lower {
namespace {

// The value outside of the fusion that `value` refers to; null if it is computed within.
Value outside(const FusedOp& fused, Value value) {
  if (fused.op.code() != OpCode::kFusion) return value;
  const Computation& body = fused.op.region(0);
  for (size_t i = 0; i < body.parameter_count(); ++i) {
    if (body.parameter(i) == value) return fused.op.operand(i);
  }
  return {};
}

struct SliceUpdate {
  const Instruction* op = nullptr;
  Value whole;
  size_t input = 0;  ///< Its index in the inputs.
};

std::optional<SliceUpdate> update_of(const FusedOp& fused, const LoweredOp& lowered) {
  SliceUpdate update;
  update.op = fused.results.size() == 1 ? fused.results[0].def : nullptr;
  if (update.op == nullptr || update.op->code() != OpCode::kDynamicUpdateSlice ||
      std::ranges::find(fused.inner, update.op) == fused.inner.end()) {
    return std::nullopt;
  }
  update.whole = outside(fused, update.op->operand(0));
  const auto input = std::ranges::find(lowered.inputs, update.whole);
  if (!update.whole || input == lowered.inputs.end()) return std::nullopt;
  update.input = static_cast<size_t>(input - lowered.inputs.begin());
  return update;
}

// By the elements that are stored. If the operand is still needed, the copy takes the time of all
// elements.
std::optional<double> estimate_slice_update(const ScheduleInput& input) {
  const auto update = update_of(input.fused, input.lowered);
  if (!update) return std::nullopt;
  const auto part = static_cast<double>(element_count(update->op->operand_type(1).dims()));
  const auto whole = static_cast<double>(element_count(update->whole.type().dims()));
  const double copied = ends_at(update->whole, input.fused.op) ? 0 : 1;
  return input.elements_seconds * (copied + part / std::max(whole, 1.0));
}

Taken emit_slice_update(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                        const LowerLimits&) {
  const auto found = update_of(fused, lowered);
  if (!found) return false;
  const Instruction* const update = found->op;
  const Value whole = found->whole;
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
  lowered.copies.emplace_back(0, static_cast<uint32_t>(found->input));
  return true;
}

}  // namespace

constinit const Schedule kSliceUpdate = {
    "slice-update",
    "a dynamic_update_slice whose operand has no later readers",
    "one element of the slice per lane, stored in the memory of the operand",
    {},
    estimate_slice_update,
    emit_slice_update};

}  // namespace tenon::hlo::lower
