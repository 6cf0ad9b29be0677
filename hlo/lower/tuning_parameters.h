// TuningParameters: the choices of a lowering as named integers. A bad choice makes a kernel slow
// or declined, but its results stay correct.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/base/status.h"

namespace tenon::hlo::lower {

/// A parameter: a size from 1 to `most`, or a flag (0 or 1).
struct TuningParameterInfo {
  std::string_view name;
  std::string_view meaning;
  int64_t most = 1;    ///< 1 for a flag.
  int64_t drawn[4]{};  ///< Sizes that differential tests draw; 0 ends the list.

  bool is_flag() const { return most == 1; }
};

/// Parameters that are not specific to one schedule (for the others see
/// hlo/lower/schedules/schedules.h).
namespace parameters {
inline constexpr TuningParameterInfo kLanes = {
    "lanes", "elements per workgroup, one per lane", 1024, {1, 3, 32, 1000}};
inline constexpr TuningParameterInfo kRowScratch = {
    "row_scratch", "whether values of a row that several passes need stay in scratch memory"};
inline constexpr TuningParameterInfo kFftPoints = {
    "fft_points", "the maximum length of an fft in scratch memory", 1 << 20, {2, 30, 100}};
inline constexpr TuningParameterInfo kFftLines = {
    "fft_lines", "transforms of an fft in a workgroup", 1024, {1, 3, 16}};
inline constexpr TuningParameterInfo kSelectionGroups = {
    "selection_groups",
    "groups of a row of which the first elements are selected",
    4096,
    {1, 2, 8, 64}};
inline constexpr TuningParameterInfo kSortBlock = {
    "sort_block",
    "elements of a long row that a workgroup sorts in scratch memory",
    1 << 16,
    {64, 128, 1024}};
inline constexpr TuningParameterInfo kSortCounts = {
    "sort_counts", "whether rows of integers of at most 8 bits are sorted by counting"};
inline constexpr TuningParameterInfo kScatterAtomic = {
    "scatter_atomic", "whether updates of a scatter run in parallel, as atomics"};
inline constexpr TuningParameterInfo kScatterCounts = {
    "scatter_counts", "whether workgroups combine updates of a scatter in scratch memory"};
inline constexpr TuningParameterInfo kScatterCopies = {
    "scatter_copies",
    "parts in which a scatter combines updates, each into a copy of the result",
    256,
    {2, 3, 16}};
inline constexpr TuningParameterInfo kScatterUnique = {
    "scatter_unique", "whether updates of different positions run in parallel"};
inline constexpr TuningParameterInfo kInPlace = {"in_place",
                                                 "whether buffers are merged where possible"};
inline constexpr TuningParameterInfo kControlInWorkgroup = {
    "control_in_workgroup", "whether a loop over small arrays is one kernel"};
}  // namespace parameters

/// "name = value", as a vendor or a user states it.
using TuningEntry = std::pair<std::string, int64_t>;

class TuningParameters {
 public:
  TuningParameters() = default;
  /// Parameters for differential tests: every choice that is not set is drawn from the seed.
  static TuningParameters random(uint64_t seed);

  void set(std::string name, int64_t value) { values_[std::move(name)] = value; }
  bool is_set(std::string_view name) const { return values_.contains(name); }
  /// Replaces lowering's preferred value; random parameters may still draw another.
  void prefer(std::string name, int64_t value) { preferred_[std::move(name)] = value; }
  /// The value that was set for the parameter, if any. Otherwise, for random parameters, one of
  /// `preferred` and the parameter's drawn values; else `preferred`. Always a legal value.
  int64_t choose(const TuningParameterInfo& parameter, int64_t preferred);
  bool choose_flag(const TuningParameterInfo& parameter, bool preferred) {
    return choose(parameter, preferred ? 1 : 0) != 0;
  }
  /// True: use the schedule with this name if it fits; false: never use it; nothing: the cost model
  /// decides.
  std::optional<bool> use(std::string_view schedule);
  /// From now on `choose`, also of copies, inserts the parameter's name into `names`: what a
  /// program can be tuned by.
  void record_asked(std::set<std::string>* names) { asked_ = names; }

 private:
  std::map<std::string, int64_t, std::less<>> values_;
  std::map<std::string, int64_t, std::less<>> preferred_;
  std::optional<Random> random_;  // Only in random parameters.
  std::set<std::string>* asked_ = nullptr;
};

/// All parameters: the general ones and those of schedules, whose own names are flags.
std::vector<TuningParameterInfo> all_tuning_parameters();
/// OK, or an error that names the entry: an unknown parameter, or an illegal value.
Status check(std::span<const TuningEntry> entries);

}  // namespace tenon::hlo::lower
