// Ops with lowerings of their own, instead of schedules. Each appends kernels to `lowered`, whose
// inputs are set.
#pragma once

#include <string_view>

#include "hlo/lower/lower_op.h"

namespace tenon::hlo::lower {

Status lower_sort(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits);
/// Sorts of integers of at most 8 bits, by counting.
bool lowers_by_counting(const Instruction& op, TuningParameters& tuning, const LowerLimits& limits);
Status lower_counting_sort(LoweredOp& lowered, const Instruction& op);
Status lower_fft(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                 const LowerLimits& limits);
/// A scatter, or a fusion of one and the ops that compute its indices and updates.
Status lower_scatter(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                     const LowerLimits& limits);
/// The kind of such a fusion.
inline constexpr std::string_view kScatterKind = "scatter";
/// The scatter of such a fusion, whose only result is that of the fusion; null for other ops.
const Instruction* scatter_of_fusion(const Instruction& op);

/// The kind of a fusion of one sort, slices of the first elements of its rows, equally many of each
/// result, and iotas that it sorts.
inline constexpr std::string_view kSelectionKind = "first";
/// The sort of such a fusion; null for other ops.
const Instruction* sort_of_selection(const Instruction& op);
/// An error of kResourceExhausted if there is not enough scratch memory.
Status lower_selection(LoweredOp& lowered, const Instruction& fusion, TuningParameters& tuning,
                       const LowerLimits& limits);

}  // namespace tenon::hlo::lower
