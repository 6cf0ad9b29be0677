// The pass `first-elements`: sorts of which the first elements of each row alone are used.
#include <algorithm>

#include "hlo/lower/elements/emitter.h"
#include "hlo/lower/schedules/own_kernels.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/passes/pass.h"

namespace tenon::hlo {
namespace {

// Selecting k elements of n takes n comparisons, and for each of the k about 32 in rows of up to
// 32 k elements; sorting takes n log^2 n.
constexpr int64_t kShortestRow = 64;
constexpr int64_t kMostKept = 1024;
constexpr int64_t kLeastFraction = 8;

// The number of elements that `slice` keeps of each row, if those are the first of all rows.
int64_t kept_of_rows(const Instruction& slice, size_t axis) {
  const Dims& from = slice.operand_type(0).dims();
  const I64s& starts = slice.i64s(AttrKey::start_indices);
  const I64s& limits = slice.i64s(AttrKey::limit_indices);
  const I64s strides = slice.i64s_or(AttrKey::strides, from.size(), 1);
  for (size_t d = 0; d < from.size(); ++d) {
    if (starts[d] != 0 || strides[d] != 1 || (limits[d] != from[d] && d != axis)) return 0;
  }
  return limits[axis];
}

// Whether a comparison of the region is no order of NaNs. A sort by it gives some array, and its
// first elements are not those of a selection.
bool has_no_order(const Computation& region) {
  return std::ranges::any_of(region, [](const Instruction& op) {
    if (op.code() != OpCode::kCompare || !is_float(op.operand_type(0).element_type())) return false;
    const auto direction = op.enumeration<ComparisonDirection>(AttrKey::comparison_direction);
    return direction != ComparisonDirection::kEq && direction != ComparisonDirection::kNe &&
           op.enumeration<ComparisonType>(AttrKey::compare_type) != ComparisonType::kTotalOrder;
  });
}

// The sort, its slices and the iotas that it alone reads; nothing if the sort does not fit.
std::vector<Instruction*> selection_at(Instruction& sort) {
  const Type& type = sort.operand_type(0);
  if (type.rank() == 0 || !type.shape().is_static() || sort.uses().empty()) return {};
  int64_t axis = sort.integer(AttrKey::dimension, -1);
  if (axis < 0) axis += type.rank();
  const int64_t size = type.dims()[static_cast<size_t>(axis)];
  if (size < kShortestRow || element_count(type.dims()) == 0) return {};
  if (!lower::has_elemental_regions(sort) || has_no_order(sort.region(0))) return {};
  std::vector<Instruction*> ops;
  for (const Value operand : sort.operands()) {
    const bool own = operand.def->code() == OpCode::kIota && operand.def->uses().size() == 1 &&
                     operand.def->parent() == sort.parent();
    if (own) ops.push_back(operand.def);
  }
  ops.push_back(&sort);
  int64_t kept = 0;
  for (const Use& use : sort.uses()) {
    Instruction& slice = *use.user;
    if (slice.code() != OpCode::kSlice || slice.parent() != sort.parent()) return {};
    const int64_t mine = kept_of_rows(slice, static_cast<size_t>(axis));
    if (mine < 1 || (kept != 0 && mine != kept)) return {};
    kept = mine;
    if (std::ranges::find(ops, &slice) == ops.end()) ops.push_back(&slice);
  }
  return kept <= kMostKept && kept * kLeastFraction <= size ? ops : std::vector<Instruction*>();
}

Result<bool> first_elements_in(Computation& computation) {
  bool changed = false;
  std::vector<Instruction*> sorts;
  for (Instruction& op : computation) {
    if (op.code() == OpCode::kFusion) continue;
    if (op.code() == OpCode::kSort) sorts.push_back(&op);
    for (size_t r = 0; r < op.region_count(); ++r) {
      TENON_ASSIGN(const bool inner, first_elements_in(op.region(r)));
      changed |= inner;
    }
  }
  for (Instruction* const sort : sorts) {
    const std::vector<Instruction*> ops = selection_at(*sort);
    if (ops.empty()) continue;
    // Ops that cannot be fused stay as they are.
    changed |= fuse(ops, std::string(lower::kSelectionKind)).has_value();
  }
  return changed;
}

}  // namespace

Result<bool> first_elements(Module& module) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    TENON_ASSIGN(const bool here, first_elements_in(*function));
    changed |= here;
  }
  return changed;
}

}  // namespace tenon::hlo
