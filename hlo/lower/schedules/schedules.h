// hlo/lower/schedules/: schedules: the ways in which a fusion becomes kernels.
//
// Schedules: the ways in which a fusion becomes kernels, a file each and a row each in schedules().
//
// A schedule fits a fusion (a single op is the smallest) or does not, states the time that it would
// take by the cost model, and emits kernels by the rules for elements (hlo/lower/elements), only
// providing some values from memory. The one with the least time takes the fusion; the maker of a
// device, a user or a test sets parameters, by name (hlo/lower/tuning_parameters.h).
#pragma once

#include <optional>
#include <span>

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

/// A fusion for which a schedule is looked for.
struct ScheduleInput {
  const FusedOp& fused;
  const LoweredOp& lowered;  ///< Its inputs.
  const LowerLimits& limits;
  double elements_seconds = 0;  ///< The time of one element a lane.
};

struct Schedule {
  std::string_view name;   ///< Also the parameter that sets or bars it: "tiled-dot".
  std::string_view takes;  ///< For docs/lowering.md.
  std::string_view makes;
  std::span<const TuningParameterInfo> parameters;
  /// The time it takes, in seconds; nothing where it does not fit.
  std::optional<double> (*estimate)(const ScheduleInput& input) = nullptr;
  /// Emits the kernels. False if it does not fit after all; `lowered` is then as before.
  Taken (*emit)(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                const LowerLimits& limits) = nullptr;
};

/// The registry. Of equal times the earlier one is taken; the last fits everything.
std::span<const Schedule> schedules();
/// The tables of docs/lowering.md.
std::string schedules_documentation();

/// The rows, each in its file.
extern const Schedule kSliceUpdate, kTiledDot, kTwoStage, kRowWorkgroup, kRowLane, kTiledTranspose,
    kSharedReduction, kElements;

/// Stores the results numbered `which` at `index`.
void store_results(KernelMaker& maker, const FusedOp& fused, const std::vector<uint32_t>& which,
                   const std::vector<kernel::MemoryId>& memories, const Values& index);
/// Serial loops over `dims` around `body`.
void for_each_serially(kernel::Builder& b, const Dims& dims,
                       const std::function<void(const Values&)>& body);

}  // namespace tenon::hlo::lower
