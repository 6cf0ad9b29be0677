// The schedules for single ops and for any fusion: one element per lane, or a reduction shared by
// the lanes of a workgroup.
#include <algorithm>
#include <set>
#include <tuple>

#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

// --- One element per lane

// Decides whether one kernel can store two results, and which results come first. A result that
// another one reads at a different index is stored by an earlier kernel and read from memory, not
// computed again.
class Dependencies {
 public:
  explicit Dependencies(const FusedOp& fused) : fused_(fused) {}

  /// Whether `value` needs elements of a result that is not stored yet, at other indices than its
  /// own.
  bool has_to_wait(Value value, const std::vector<bool>& stored) {
    stored_ = &stored;
    seen_.clear();
    return visit(value, value.type().dims(), false);
  }

 private:
  bool visit(Value value, const Dims& dims, bool elsewhere) {
    if (!seen_.insert({value.def, value.index, elsewhere}).second) return false;
    if (std::ranges::find(fused_.inner, value.def) == fused_.inner.end()) return false;
    for (size_t r = 0; r < fused_.results.size(); ++r) {
      if (fused_.results[r] != value) continue;
      if ((*stored_)[r]) return false;
      if (elsewhere || value.type().dims() != dims) return true;
    }
    const bool same = value.def->info().category == Category::kElementwise && !elsewhere;
    return std::ranges::any_of(all_operands(*value.def), [&](Value operand) {
      return visit(operand, dims, !same || operand.type().dims() != dims);
    });
  }

  const FusedOp& fused_;
  const std::vector<bool>* stored_ = nullptr;
  std::set<std::tuple<const Instruction*, uint32_t, bool>> seen_;
};

// The dimensions [begin, end) whose elements one lane stores; none if they are equal.
struct OwnDimensions {
  size_t begin = 0;
  size_t end = 0;

  Dims of(const Dims& dims) const { return slice(dims, begin, end); }
  Dims others(const Dims& dims) const {
    Dims all = slice(dims, 0, begin);
    for (const int64_t size : slice(dims, end, dims.size())) all.push_back(size);
    return all;
  }

 private:
  static Dims slice(const Dims& dims, size_t first, size_t last) {
    return Dims(dims.begin() + static_cast<std::ptrdiff_t>(first),
                dims.begin() + static_cast<std::ptrdiff_t>(last));
  }
};

// The last dimensions, if a lane gathers all of their elements; none if those of one index go on
// before them, which are vectors of memory.
OwnDimensions own_of_gather(const FusedOp& fused, const Dims& dims, const LowerLimits& limits) {
  const CostModel& cost = limits.cost;
  const int64_t most = limits.vector_bytes >= cost.scattering_register ? cost.gathered_row_scattered
                                                                       : cost.gathered_row;
  const OwnDimensions none = {dims.size(), dims.size()};
  const auto gather = std::ranges::find_if(
      fused.inner, [](const Instruction* op) { return op->info().fusion == FusionKind::kGathers; });
  if (gather == fused.inner.end()) return none;
  size_t rest = dims.size();
  int64_t together = 1;
  while (rest > 0 && together * dims[rest - 1] <= most) together *= dims[--rest];
  const auto* numbers = (*gather)->attr<GatherDims>(AttrKey::dimension_numbers);
  if (rest == 0 || numbers == nullptr || (*gather)->result_type().dims() != dims)
    return {rest, dims.size()};
  const auto of_index = std::ranges::count_if(
      numbers->offset_dims, [&](int64_t d) { return d + 1 >= static_cast<int64_t>(rest); });
  const bool goes_on = of_index == std::ssize(dims) - static_cast<int64_t>(rest) + 1;
  return goes_on ? none : OwnDimensions{rest, dims.size()};
}

// Whether a few shuffles of each vector take rows of so many elements apart, or join them.
bool is_short_row(int64_t elements) {
  constexpr int64_t kMost = 16, kMostShuffles = 6;
  int64_t shuffles = 0, rest = elements;
  for (; rest % 2 == 0 && rest > 0; rest /= 2) ++shuffles;
  return elements <= kMost && shuffles + rest - 1 <= kMostShuffles;
}

// The short rows of a transpose of long ones, and the other way round: elements that are adjacent
// in memory on one side are those of a lane, and on the other side those of adjacent lanes.
OwnDimensions own_of_transpose(const Instruction& op) {
  constexpr int64_t kLongRow = 32;  // Small matrices are patterns of vectors.
  const Dims& dims = op.result_type().dims();
  const size_t rank = dims.size();
  const I64s& permutation = op.i64s(AttrKey::permutation);
  if (rank < 2 || static_cast<size_t>(permutation.back()) == rank - 1) return {rank, rank};
  const auto across = static_cast<size_t>(
      std::ranges::find(permutation, static_cast<int64_t>(rank - 1)) - permutation.begin());
  if (std::max(dims[across], dims.back()) < kLongRow) return {rank, rank};
  if (across + 2 == rank && is_short_row(dims.back())) return {rank - 1, rank};
  const bool follow = static_cast<size_t>(permutation.back()) + 2 == rank;
  return follow && is_short_row(dims[across]) ? OwnDimensions{across, across + 1}
                                              : OwnDimensions{rank, rank};
}

// Whether a fusion has a transpose to short rows of the shape of its results.
bool ends_in_short_rows(const FusedOp& fused, const Dims& dims) {
  constexpr int64_t kShortRow = 16;
  return !dims.empty() && std::ranges::any_of(fused.inner, [&](const Instruction* op) {
    return op->code() == OpCode::kTranspose && op->result_type().dims() == dims &&
           dims.back() < kShortRow && own_of_transpose(*op).begin == dims.size() &&
           op->i64s(AttrKey::permutation).back() + 1 != std::ssize(dims);
  });
}

// Where lanes are wide vectors, these join accesses of adjacent elements.
OwnDimensions dimensions_of_a_lane(const FusedOp& fused, const Dims& dims,
                                   const LowerLimits& limits) {
  constexpr int64_t kLeastLanes = 64;
  constexpr size_t kMostOps = 8;
  const bool wide = limits.vector_bytes >= limits.cost.wide_register;
  const bool few = fused.inner.size() <= kMostOps && !fused.combines(nullptr);
  const OwnDimensions none = {dims.size(), dims.size()};
  if (!wide || !few) return none;
  OwnDimensions own = own_of_gather(fused, dims, limits);
  for (const Instruction* op : fused.inner) {
    const bool is_transpose = op->code() == OpCode::kTranspose && op->result_type().dims() == dims;
    if (own.begin == own.end && is_transpose) own = own_of_transpose(*op);
  }
  const int64_t together = element_count(own.of(dims));
  return together > 1 && element_count(dims) / together >= kLeastLanes ? own : none;
}

// Results of one shape: one kernel over its indices. Those that are `stored` are read from memory.
Status lower_elements(LoweredOp& lowered, const FusedOp& fused,
                      const std::vector<uint32_t>& results, const std::vector<bool>& stored,
                      TuningParameters& tuning, const LowerLimits& limits,
                      std::string_view suffix) {
  return add_kernel(lowered, fused.op, suffix, [&](KernelMaker& maker) {
    maker.inputs();
    for (uint32_t r = 0; r < stored.size(); ++r) {
      if (!stored[r] || has_no_elements(fused.results[r].type())) continue;
      maker.e().bind(fused.results[r], maker.result(r, kernel::Access::kIn));
    }
    std::vector<kernel::MemoryId> memories;
    for (const uint32_t r : results) memories.push_back(maker.result(r));
    const Dims& dims = fused.results[results[0]].type().dims();
    const OwnDimensions own = dimensions_of_a_lane(fused, dims, limits);
    const Dims elements = own.of(dims);
    const bool wide = limits.vector_bytes >= limits.cost.wide_register;
    const Boxes boxes = wide && ends_in_short_rows(fused, dims) ? Boxes::kWholeApart : Boxes::kAll;
    for_each_index(
        maker.b(), own.others(dims), tuning,
        [&](const Values& lane) {
          const auto begin = lane.begin() + static_cast<std::ptrdiff_t>(own.begin);
          std::vector<Values> places;
          for (const Values& own_index : constant_indices(maker.b(), elements)) {
            Values index(lane.begin(), begin);
            index.insert(index.end(), own_index.begin(), own_index.end());
            index.insert(index.end(), begin, lane.end());
            places.push_back(std::move(index));
          }
          // Loads of adjacent elements are one if no store is between them.
          for (size_t n = 0; places.size() > 1 && n < places.size(); ++n) {
            for (const uint32_t r : results) maker.e().element(fused.results[r], places[n]);
          }
          for (const Values& index : places) store_results(maker, fused, results, memories, index);
        },
        boxes);
  });
}

Taken emit_elements(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                    const LowerLimits& limits) {
  std::vector<bool> stored(fused.results.size());
  for (uint32_t r = 0; r < fused.results.size(); ++r)
    stored[r] = has_no_elements(fused.results[r].type());
  int part = 0;
  for (const std::vector<uint32_t>& now : loops_of_results(fused)) {
    TENON_TRY(lower_elements(lowered, fused, now, stored, tuning, limits,
                             part == 0 ? "" : fmt::format("_{}", part)));
    for (const uint32_t r : now) stored[r] = true;
    ++part;
  }
  return true;
}

// The reduce or dot_general that a fusion consists of, or a reduce along memory with elementwise
// ops before it; or null.
const Instruction* shared_op(const FusedOp& fused) {
  if (std::ranges::any_of(fused.op.result_types(), has_no_elements)) return nullptr;
  const Instruction* op = fused.whole();
  if (op != nullptr) {
    const bool combines = op->code() == OpCode::kReduce || op->code() == OpCode::kDotGeneral;
    return combines ? op : nullptr;
  }
  op = reduction_of(fused);
  const bool is_elementwise = std::ranges::all_of(fused.inner, [&](const Instruction* each) {
    return each == op || each->info().category == Category::kElementwise ||
           each->code() == OpCode::kBroadcastInDim || each->code() == OpCode::kIota;
  });
  if (op == nullptr || !is_elementwise) return nullptr;
  // Leaves that are computed from one row each are no reason to load along memory.
  const int64_t leaves = element_count(op->operand_type(0).dims());
  const bool reads_leaves = std::ranges::any_of(fused.op.operands(), [&](Value each) {
    return each.type().is_tensor() && element_count(each.type().dims()) == leaves;
  });
  const bool along = is_minor(op->operand_type(0).dims(), op->i64s(AttrKey::dimensions));
  return reads_leaves && along ? op : nullptr;
}

Taken emit_shared(LoweredOp& lowered, const FusedOp& fused, TuningParameters&,
                  const LowerLimits& limits) {
  if (limits.scratch_bytes == 0) return false;  // There is no memory for the lanes' parts.
  const Instruction& op = *shared_op(fused);
  return try_kernel(lowered, fused.op, "_rows", [&](KernelMaker& maker) {
    maker.inputs();
    std::vector<kernel::MemoryId> memories;
    for (uint32_t r = 0; r < fused.results.size(); ++r) memories.push_back(maker.result(r));
    const Values index = maker.b().grid(op.result_type().dims());
    const Elements results = op.info().fusion == FusionKind::kReduces
                                 ? emit_reduce(maker.e(), op, index, true)
                                 : emit_dot(maker.e(), op, index, true);
    for (size_t r = 0; r < fused.results.size(); ++r)
      maker.e().store(results[fused.results[r].index], memories[r], index);
  });
}

// It pays if there are enough leaves to share, and if either adjacent leaves are adjacent in memory
// or there is little other parallelism.
std::optional<double> estimate_shared(const ScheduleInput& input) {
  const Instruction* op = shared_op(input.fused);
  if (op == nullptr) return std::nullopt;
  const Dims& dims = op->operand_type(0).dims();
  const auto* dot = op->attr<DotDims>(AttrKey::dot_dimension_numbers);
  const I64s& reduced = dot != nullptr ? dot->lhs_contracting : op->i64s(AttrKey::dimensions);
  int64_t leaves = 1;
  for (const int64_t d : reduced) leaves *= dims[static_cast<size_t>(d)];
  const CostModel& cost = input.limits.cost;
  // A product with more rows and columns uses each element several times: tiles are for that.
  const auto adjacent_factors = [&] {
    const DotShape shape(*op);
    return std::min(element_count(shape.m), element_count(shape.n)) < cost.tiled_product &&
           is_minor(op->operand_type(1).dims(), dot->rhs_contracting);
  };
  const bool minor = is_minor(dims, reduced) && (dot == nullptr || adjacent_factors());
  const auto results = static_cast<double>(element_count(op->result_type().dims()));
  const bool is_of_rows = minor && dot == nullptr;
  const int64_t row = op->result_count() > 1 ? cost.shared_row_and_more : cost.shared_row;
  const double shared = static_cast<double>(is_of_rows ? row : cost.shared_leaves) /
                        static_cast<double>(std::max<int64_t>(leaves, 1));
  const double busy = minor ? 0 : (results + 1) / static_cast<double>(cost.few_columns);
  return input.elements_seconds * std::max(shared, busy);
}

std::optional<double> estimate_elements(const ScheduleInput& input) {
  return input.elements_seconds;
}

}  // namespace

bool lanes_have_rows(const FusedOp& fused, const Dims& dims, const LowerLimits& limits) {
  const OwnDimensions own = dimensions_of_a_lane(fused, dims, limits);
  return own.begin < own.end;
}

std::vector<std::vector<uint32_t>> loops_of_results(const FusedOp& fused) {
  std::vector<bool> stored(fused.results.size());
  std::vector<uint32_t> rest;
  for (uint32_t r = 0; r < fused.results.size(); ++r) {
    // An empty result needs neither a store nor a load.
    stored[r] = has_no_elements(fused.results[r].type());
    if (!stored[r]) rest.push_back(r);
  }
  // The order in which the results are computed.
  const auto place = [&](uint32_t r) {
    return std::ranges::find(fused.inner, fused.results[r].def) - fused.inner.begin();
  };
  std::ranges::stable_sort(rest, {}, place);
  Dependencies dependencies(fused);
  std::vector<std::vector<uint32_t>> loops;
  while (!rest.empty()) {
    std::vector<uint32_t> now;
    std::vector<uint32_t> later;
    for (const uint32_t r : rest) {
      const bool fits =
          now.empty() || fused.results[r].type().dims() == fused.results[now[0]].type().dims();
      const bool waits =
          fused.op.code() == OpCode::kFusion && dependencies.has_to_wait(fused.results[r], stored);
      (fits && !waits ? now : later).push_back(r);
    }
    for (const uint32_t r : now) stored[r] = true;
    loops.push_back(std::move(now));
    rest = std::move(later);
  }
  return loops;
}

constinit const Schedule kSharedReduction = {
    "shared-reduction",
    "a reduce or dot_general of many leaves, a reduce along memory also with ops before it",
    "one workgroup per result, whose lanes share the leaves",
    {},
    estimate_shared,
    emit_shared};
constinit const Schedule kElements = {
    "elements",
    "anything",
    "one element per lane. Results of one shape share a kernel; a result that another one reads at "
    "a different index is stored first and read from memory",
    {},
    estimate_elements,
    emit_elements};

}  // namespace tenon::hlo::lower
