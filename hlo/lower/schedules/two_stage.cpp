// A large reduction to few results in two stages: workgroups reduce parts of the leaves, then one
// workgroup per result reduces the parts.
//
// The initial value enters once, in the second stage (K5): a part begins with the identity element
// if it is known, else with its first leaf. If it is known and parts can be whole runs of the first
// dimension, leaves keep their dimensions; else leaves are numbered, and those that do not fill a
// part go to the second stage too. Their order is kept.
#include <algorithm>
#include <optional>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::MemoryId;

struct Parts {
  int64_t leaves;
  int64_t count;
  int64_t size() const { return leaves / count; }
  int64_t rest() const { return leaves % count; }
  /// The initial value of a part of whole runs.
  std::optional<uint64_t> identity = std::nullopt;
};

// The greatest divisor of `extent` up to `most`; 1 if that would give too few parts.
int64_t even_parts(int64_t extent, int64_t most) {
  for (int64_t count = most; count >= std::max<int64_t>(most / 4, 2); --count) {
    if (extent % count == 0) return count;
  }
  return 1;
}

Elements leaf_at(const ReductionEmitter& r, const Values& kept, ValueId leaf) {
  const Values reduced = delinearize(r.e.b, leaf, reduced_extents(r.op));
  return r.leaf(unreduced_index(r.op, kept, reduced));
}

kernel::Builder::ReduceSpec over_lanes(const ReductionEmitter& r, Dims extents, Values inits) {
  kernel::Builder::ReduceSpec reduction;
  reduction.extents = std::move(extents);
  reduction.over_lanes = true;
  reduction.commutative = r.is_commutative();
  reduction.inits = std::move(inits);
  reduction.combine = [&r](const Values& arguments) { return r.combine(arguments); };
  return reduction;
}

void first_stage(KernelMaker& maker, const Instruction& reduce, const Parts& parts) {
  kernel::Builder& b = maker.b();
  const ReductionEmitter r(maker.e(), reduce);
  maker.inputs();
  std::vector<MemoryId> found;
  for (uint32_t k = 0; k < r.count; ++k) {
    found.push_back(maker.temporary(k, kernel::Access::kOut));
  }
  Dims grid = reduce.result_type().dims();
  grid.push_back(parts.count);
  const Values index = b.grid(grid);
  const Values kept(index.begin(), index.end() - 1);
  if (parts.identity) {
    Dims extents = reduced_extents(reduce);
    extents[0] /= parts.count;
    const ValueId first = b.mul(index.back(), b.index(extents[0]));
    auto reduction = over_lanes(r, extents, {b.constant(r.types[0], *parts.identity)});
    reduction.leaf = [&](const Values& at) {
      Values reduced = at;
      reduced[0] = b.add(first, reduced[0]);
      return ElementEmitter::flat(r.leaf(unreduced_index(reduce, kept, reduced)));
    };
    maker.e().store(ElementEmitter::unflat(b.reduce(reduction), r.types)[0], found[0], index);
    return;
  }
  const ValueId first = b.mul(index.back(), b.index(parts.size()));
  auto reduction = over_lanes(r, {parts.size() - 1}, ElementEmitter::flat(leaf_at(r, kept, first)));
  reduction.leaf = [&](const Values& at) {
    const ValueId leaf = b.add(first, b.add(at[0], b.index(1)));
    return ElementEmitter::flat(leaf_at(r, kept, leaf));
  };
  const Elements sums = ElementEmitter::unflat(b.reduce(reduction), r.types);
  for (size_t k = 0; k < r.count; ++k) maker.e().store(sums[k], found[k], index);
}

void second_stage(KernelMaker& maker, const FusedOp& fused, const Instruction& reduce,
                  const Parts& parts) {
  kernel::Builder& b = maker.b();
  ElementEmitter& e = maker.e();
  const ReductionEmitter r(e, reduce);
  maker.inputs();
  std::vector<MemoryId> found;
  std::vector<MemoryId> results;
  for (uint32_t k = 0; k < r.count; ++k) {
    found.push_back(maker.temporary(k, kernel::Access::kIn));
  }
  for (uint32_t i = 0; i < fused.results.size(); ++i) results.push_back(maker.result(i));
  const Values kept = b.grid(reduce.result_type().dims());
  auto reduction = over_lanes(r, {parts.count + parts.rest()}, ElementEmitter::flat(r.inits()));
  reduction.leaf = [&](const Values& at) {
    const auto part = [&] {
      Values index = kept;
      index.push_back(at[0]);
      Elements elements;
      for (size_t k = 0; k < r.count; ++k) {
        elements.push_back(e.load(found[k], Type::tensor(r.types[k], {}), index));
      }
      return elements;
    };
    if (parts.rest() == 0) return ElementEmitter::flat(part());
    return ElementEmitter::flat(
        e.if_else(b.compare(K::kLt, at[0], b.index(parts.count)), r.types, part, [&] {
          const ValueId leaf = b.add(at[0], b.index(parts.size() * parts.count - parts.count));
          return leaf_at(r, kept, leaf);
        }));
  };
  const Elements sums = r.rounded(ElementEmitter::unflat(b.reduce(reduction), r.types));
  for (size_t i = 0; i < results.size(); ++i) {
    e.store(sums[fused.results[i].index], results[i], kept);
  }
}

constexpr TuningParameterInfo kTwoStageParameters[] = {
    {"parts", "workgroups that share the leaves of a result", 1 << 16, {2, 3, 7}}};

// The second launch pays on a device that is busy in the first: the gain over lanes that share a
// reduction grows with the number of leaves.
std::optional<double> estimate_two_stage(const ScheduleInput& input) {
  const Instruction* reduce = reduction_of(input.fused);
  if (reduce == nullptr) return std::nullopt;
  const CostModel& cost = input.limits.cost;
  const int64_t results = element_count(reduce->result_type().dims());
  const int64_t leaves = element_count(reduced_extents(*reduce));
  if (results == 0 || leaves < 4) return std::nullopt;
  if (is_shared_by_columns(input)) return 2 * input.elements_seconds;
  const double launches = static_cast<double>(cost.long_reduction) / static_cast<double>(leaves);
  if (launches > 1 || results > cost.few_columns) return input.elements_seconds * (1 + launches);
  const double shared = static_cast<double>(cost.shared_leaves) / static_cast<double>(leaves);
  return input.elements_seconds * shared * launches;
}

Taken emit_two_stage(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                     const LowerLimits& limits) {
  const Instruction* reduce = reduction_of(fused);
  Parts parts = {element_count(reduced_extents(*reduce)), 1};
  const Dims extents = reduced_extents(*reduce);
  const std::vector<ElementType> types = accumulator_types(reduce->region(0));
  const auto identity = types.size() == 1 ? identity_of(reduce->region(0), types[0]) : std::nullopt;
  int64_t preferred = std::clamp<int64_t>(parts.leaves / limits.cost.leaves_a_part, 2, 256);
  const int64_t even = identity ? even_parts(extents[0], preferred) : 1;
  if (even > 1) preferred = even;
  parts.count = std::min(tuning.choose(kTwoStageParameters[0], preferred), parts.leaves / 2);
  if (extents[0] % parts.count == 0) parts.identity = identity;
  Dims dims = reduce->result_type().dims();
  dims.push_back(parts.count);
  for (const ElementType type : types) lowered.temporaries.emplace_back(type, dims);
  TENON_TRY(add_kernel(lowered, fused.op, "_parts",
                       [&](KernelMaker& maker) { first_stage(maker, *reduce, parts); }));
  TENON_TRY(add_kernel(lowered, fused.op, "_total",
                       [&](KernelMaker& maker) { second_stage(maker, fused, *reduce, parts); }));
  return true;
}

}  // namespace

constinit const Schedule kTwoStage = {
    "two-stage",
    "a reduce to few results, and the ops before it",
    "workgroups reduce parts, each beginning with its first leaf; then one a result reduces these "
    "from the init value, which so enters once",
    kTwoStageParameters,
    estimate_two_stage,
    emit_two_stage};

}  // namespace tenon::hlo::lower
