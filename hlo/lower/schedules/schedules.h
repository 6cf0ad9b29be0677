// hlo/lower/schedules/: schedules: the ways in which a fusion becomes kernels.
//
// Each schedule has a file and a row in schedules().
//
// A schedule estimates by the cost model how long a fusion (a single op is the smallest) would take
// with it, if it fits, and emits kernels by the element rules (hlo/lower/elements), with some
// values provided from memory. The fastest schedule lowers the fusion. A vendor, a user or a test
// can set parameters by name (hlo/lower/tuning_parameters.h).
#pragma once

#include <optional>
#include <span>

#include "hlo/lower/kernel_maker.h"

namespace tenon::hlo::lower {

/// An op to be lowered; for a fusion, with its inner ops.
struct FusedOp {
  explicit FusedOp(const Instruction& instruction);

  const Instruction& op;
  /// The ops to compute: those of the fusion's body in order, without constants, or `op` itself.
  std::vector<const Instruction*> inner;
  /// The values in `inner` (or parameters of the body) that are the results of `op`.
  std::vector<Value> results;

  /// The op whose results are those of the fusion, if the fusion computes nothing else; or null.
  const Instruction* whole() const;
  /// The only op in `inner` with this code, or null.
  const Instruction* only(OpCode code) const;
  /// Whether any op in `inner` other than `except` combines elements (reduces, contracts, windows).
  bool combines(const Instruction* except) const;
};

/// A fusion for which a schedule is chosen.
struct ScheduleInput {
  const FusedOp& fused;
  const LoweredOp& lowered;  ///< Only its inputs are set.
  const LowerLimits& limits;
  double elements_seconds = 0;  ///< The time with one element per lane.
};

struct Schedule {
  std::string_view name;   ///< Also the parameter that forces or forbids it: "tiled-dot".
  std::string_view takes;  ///< For docs/lowering.md.
  std::string_view makes;
  std::span<const TuningParameterInfo> parameters;
  /// The estimated time in seconds; nothing if it does not fit.
  std::optional<double> (*estimate)(const ScheduleInput& input) = nullptr;
  /// Emits the kernels. Returns false if it does not fit after all; `lowered` is then unchanged.
  Taken (*emit)(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                const LowerLimits& limits) = nullptr;
};

/// The registry. If estimates are equal the earlier schedule is chosen; the last one fits
/// everything.
std::span<const Schedule> schedules();
/// The tables of docs/lowering.md.
std::string schedules_documentation();

/// The rows, each defined in its file.
extern const Schedule kSliceUpdate, kAttention, kTiledDot, kTiledConvolution, kTwoStage,
    kPrefixScan, kRowWorkgroup, kRowLane, kConcatenation, kTiledTranspose, kSharedColumns,
    kSharedReduction, kElements;

/// Whether lanes in rows and columns share the leaves (kSharedColumns), which kTwoStage would read
/// with gaps.
bool is_shared_by_columns(const ScheduleInput& input);

/// The indices of all elements of an array of `dims`, in order, as constants.
std::vector<Values> constant_indices(kernel::Builder& b, const Dims& dims);

/// Whether a lane of one element per lane has a short row of elements of results of `dims`, which
/// wide vectors take apart or join.
bool lanes_have_rows(const FusedOp& fused, const Dims& dims, const LowerLimits& limits);

/// The numbers of the results that one loop over their elements can store, for each of several
/// loops in order: a later loop may read what earlier ones stored. Results without elements are in
/// none.
std::vector<std::vector<uint32_t>> loops_of_results(const FusedOp& fused);
/// Stores the results with the numbers `which` at `index`.
void store_results(KernelMaker& maker, const FusedOp& fused, const std::vector<uint32_t>& which,
                   const std::vector<kernel::MemoryId>& memories, const Values& index);
/// The reduce that all results of the fusion are of, beside what computes its operands; or null.
const Instruction* reduction_of(const FusedOp& fused);
/// Whether the last dimension of more than one element is among `listed`.
bool is_minor(const Dims& dims, const I64s& listed);
/// Serial loops over `dims` around `body`.
void for_each_serially(kernel::Builder& b, const Dims& dims,
                       const std::function<void(const Values&)>& body);

}  // namespace tenon::hlo::lower
