// Reductions whose adjacent results lie behind adjacent elements, such as sums of columns, and
// products with a few rows: on devices with many lanes that the results alone do not fill.
//
// The lanes of a workgroup are rows and columns: a column of lanes shares the leaves of a result,
// and a row of lanes reads adjacent elements. Each lane combines a run of leaves, then one lane a
// result combines the runs, in order. If there are still too few workgroups, several share the
// leaves of the same results, and a second kernel combines what they found.
//
// A run begins with the identity element if it is known, else with its first leaf; the initial
// value enters once, at the end (K5).
#include <algorithm>
#include <bit>

#include "hlo/ir/region.h"
#include "hlo/lower/elements/contraction.h"
#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::MemoryId;

int64_t count_leaves(const Instruction& op) {
  return element_count(op.code() == OpCode::kReduce ? reduced_extents(op) : DotShape(op).k);
}

// The types in which it combines.
std::vector<ElementType> accumulators_of(const Instruction& op) {
  if (op.code() == OpCode::kReduce) return accumulator_types(op.region(0));
  return {accumulator(op)};
}

bool is_real(const Type& type) { return !is_complex(type.element_type()); }

// The reduction or product of a fusion whose results all have its shape; null if there is another
// one beside it.
const Instruction* column_op(const FusedOp& fused) {
  const Instruction* op = fused.only(OpCode::kReduce);
  if (op == nullptr) op = fused.only(OpCode::kDotGeneral);
  if (op == nullptr || fused.combines(op) || element_count(op->result_type().dims()) == 0) {
    return nullptr;
  }
  if (op->code() == OpCode::kReduce && !combines_accumulators(op->region(0))) return nullptr;
  const bool fits = std::ranges::all_of(fused.results, [&](const Value& result) {
    return result.type().dims() == op->result_type().dims();
  });
  const bool real =
      std::ranges::all_of(op->result_types(), is_real) &&
      std::ranges::all_of(op->operands(), [](const Value& v) { return is_real(v.type()); });
  return fits && real ? op : nullptr;
}

// Whether adjacent results are made of adjacent elements.
bool reads_adjacent(const Instruction& op, const CostModel& cost) {
  if (op.code() == OpCode::kReduce) {
    return !is_minor(op.operand_type(0).dims(), op.i64s(AttrKey::dimensions));
  }
  const DotShape shape(op);
  const int64_t m = element_count(shape.m);
  const int64_t n = element_count(shape.n);
  const size_t wide = m > n ? 0 : 1;
  return std::min(m, n) < cost.tiled_product &&
         is_minor(op.operand_type(wide).dims(), shape.free[wide]);
}

// How the leaves of each result are divided.
struct LeafDivision {
  int64_t results;
  int64_t leaves;
  int64_t columns;     ///< Results of a workgroup.
  int64_t rows;        ///< Lanes that share the leaves of a result.
  int64_t workgroups;  ///< Those that share them.

  int64_t runs() const { return rows * workgroups; }
  /// Leaves of a run; the first ones have one more.
  int64_t length() const { return leaves / runs(); }
  int64_t longer() const { return leaves % runs(); }
};

class ColumnKernel {
 public:
  ColumnKernel(KernelMaker& maker, const FusedOp& fused, const Instruction& op,
               LeafDivision division)
      : maker_(maker), b_(maker.b()), fused_(fused), op_(op), by_(division) {}

  /// The results, or temporaries with what each workgroup found.
  void combine_runs() {
    maker_.inputs();
    memories(kernel::Access::kOut);
    const Values place = b_.grid({by_.workgroups, tiles_of(by_.results, by_.columns)});
    const ValueId first = b_.mul(place[1], b_.index(by_.columns));
    for (const ElementType type : accumulators_of(op_)) {
      runs_.push_back(
          b_.scratch("runs", memory_type(Type::tensor(type, {})), {by_.rows, by_.columns}));
    }
    b_.lanes({by_.rows, by_.columns}, [&](const Values& lane) {
      const ValueId column = b_.add(first, lane[1]);
      const ValueId run = b_.add(b_.mul(place[0], b_.index(by_.rows)), lane[0]);
      if_inside(b_, {{column, by_.results, by_.columns}},
                [&] { store(run_of(index_of(column), run), runs_, {lane[0], lane[1]}); });
    });
    b_.lanes({by_.columns}, [&](const Values& lane) {
      const ValueId column = b_.add(first, lane[0]);
      if_inside(b_, {{column, by_.results, by_.columns}}, [&] {
        const auto run = [&](ValueId row) { return load(runs_, {row, lane[0]}); };
        if (by_.workgroups == 1) return finish(index_of(column), by_.rows, run);
        LeafReduction found = leaves_of(maker_.e(), op_, index_of(column));
        found.spec.extents = {by_.rows - 1};
        found.spec.inits = ElementEmitter::flat(run(b_.index(0)));
        found.spec.leaf = [&](const Values& at) {
          return ElementEmitter::flat(run(b_.add(at[0], b_.index(1))));
        };
        store(ElementEmitter::unflat(b_.reduce(found.spec), found.types), found_,
              {place[0], column});
      });
    });
  }

  /// The results, from those temporaries.
  void combine_workgroups(TuningParameters& tuning) {
    maker_.inputs();
    memories(kernel::Access::kIn);
    for_each_index(b_, {by_.results}, tuning, [&](const Values& column) {
      finish(index_of(column[0]), by_.workgroups,
             [&](ValueId workgroup) { return load(found_, {workgroup, column[0]}); });
    });
  }

 private:
  // `found` is how the first kernel has the temporaries: kOut where it makes them.
  void memories(kernel::Access found) {
    const bool of_results = by_.workgroups == 1 || found == kernel::Access::kIn;
    const size_t count = accumulators_of(op_).size();
    for (uint32_t k = 0; by_.workgroups > 1 && k < count; ++k) {
      found_.push_back(maker_.temporary(k, found));
    }
    for (uint32_t r = 0; of_results && r < fused_.results.size(); ++r) {
      all_.push_back(r);
      results_.push_back(maker_.result(r));
    }
  }

  Values index_of(ValueId column) const {
    return delinearize(b_, column, op_.result_type().dims());
  }

  Elements load(const std::vector<MemoryId>& memories, const Values& index) {
    const std::vector<ElementType> types = accumulators_of(op_);
    Elements elements;
    for (size_t k = 0; k < types.size(); ++k) {
      elements.push_back(maker_.e().load(memories[k], Type::tensor(types[k], {}), index));
    }
    return elements;
  }
  void store(const Elements& elements, const std::vector<MemoryId>& memories, const Values& index) {
    for (size_t k = 0; k < elements.size(); ++k) {
      maker_.e().store(elements[k], memories[k], index);
    }
  }

  Elements run_of(const Values& index, ValueId run) {
    LeafReduction leaves = leaves_of(maker_.e(), op_, index);
    const Dims extents = leaves.spec.extents;
    const auto leaf = [extents, at_leaf = leaves.spec.leaf, this](ValueId number) {
      return at_leaf(delinearize(b_, number, extents));
    };
    ValueId first = b_.mul(run, b_.index(by_.length()));
    if (by_.longer() > 0) first = b_.add(first, b_.min(run, b_.index(by_.longer())));
    const bool known = !leaves.identities.empty();
    leaves.spec.inits = known ? ElementEmitter::flat(leaves.identities) : leaf(first);
    leaves.spec.extents = {by_.length() - (known ? 0 : 1)};
    leaves.spec.leaf = [&](const Values& at) {
      return leaf(b_.add(first, known ? at[0] : b_.add(at[0], b_.index(1))));
    };
    const Elements combined = ElementEmitter::unflat(b_.reduce(leaves.spec), leaves.types);
    if (by_.longer() == 0) return combined;
    return maker_.e().if_else(
        b_.compare(K::kLt, run, b_.index(by_.longer())), leaves.types,
        [&] {
          Values both = ElementEmitter::flat(combined);
          const Values last = leaf(b_.add(first, b_.index(by_.length())));
          both.insert(both.end(), last.begin(), last.end());
          return ElementEmitter::unflat(leaves.spec.combine(both), leaves.types);
        },
        [&] { return combined; });
  }

  // Combines `count` parts with the initial value, and stores what follows from the result.
  void finish(const Values& index, int64_t count, const std::function<Elements(ValueId)>& part) {
    LeafReduction parts = leaves_of(maker_.e(), op_, index);
    parts.spec.extents = {count};
    parts.spec.leaf = [&](const Values& at) { return ElementEmitter::flat(part(at[0])); };
    const Elements combined = ElementEmitter::unflat(b_.reduce(parts.spec), parts.types);
    maker_.e().provide(op_, index, parts.rounded(combined));
    store_results(maker_, fused_, all_, results_, index);
  }

  KernelMaker& maker_;
  kernel::Builder& b_;
  const FusedOp& fused_;
  const Instruction& op_;
  const LeafDivision by_;
  std::vector<MemoryId> runs_, found_, results_;
  std::vector<uint32_t> all_;
};

constexpr TuningParameterInfo kColumnParameters[] = {
    {"columns", "results of a workgroup whose lanes share their leaves", 256, {1, 4, 32}},
    {"column_rows", "lanes that share the leaves of a result", 256, {2, 3, 8}},
    {"column_workgroups", "workgroups that share the leaves of a result", 1024, {1, 2, 5}}};

LeafDivision leaf_division(const Instruction& op, TuningParameters& tuning, const CostModel& cost) {
  LeafDivision by = {element_count(op.result_type().dims()), count_leaves(op), 1, 1, 1};
  const auto wide = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(by.results)));
  by.columns = tuning.choose(kColumnParameters[0], std::min(cost.adjacent_results, wide));
  const int64_t lanes = std::max<int64_t>(cost.lanes / by.columns, 2);
  by.rows = std::min(tuning.choose(kColumnParameters[1], lanes), by.leaves / 2);
  const int64_t units = std::max<int64_t>(cost.busy_lanes / cost.lanes, 1);
  const int64_t wanted = tiles_of(2 * units, tiles_of(by.results, by.columns));
  // One lane combines what the workgroups found.
  const int64_t most =
      std::clamp<int64_t>(by.leaves / (by.rows * cost.shortest_run), 1, cost.shared_leaves);
  // If most units have work, a second launch does not pay.
  const int64_t preferred = wanted > 2 ? std::min(wanted, most) : 1;
  by.workgroups = tuning.choose(kColumnParameters[2], preferred);
  by.workgroups = std::clamp<int64_t>(by.workgroups, 1, by.leaves / (2 * by.rows));
  return by;
}

// Each lane reads a part of a result's leaves, as long as there are idle lanes to read them.
std::optional<double> estimate_columns(const ScheduleInput& input) {
  const Instruction* op = column_op(input.fused);
  if (op == nullptr || input.limits.scratch_bytes == 0 || count_leaves(*op) < 4) {
    return std::nullopt;
  }
  if (!is_shared_by_columns(input)) return 2 * input.elements_seconds;
  constexpr double kCombining = 2;
  const CostModel& cost = input.limits.cost;
  const auto results = static_cast<double>(element_count(op->result_type().dims()));
  const double idle = static_cast<double>(cost.busy_lanes) / results;
  const double runs =
      static_cast<double>(count_leaves(*op)) / static_cast<double>(cost.shortest_run);
  return input.elements_seconds * kCombining / std::min(idle, runs);
}

Taken emit_columns(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                   const LowerLimits& limits) {
  const Instruction& op = *column_op(fused);
  const LeafDivision by = leaf_division(op, tuning, limits.cost);
  constexpr int64_t kWidest = 8;
  const auto kinds = static_cast<int64_t>(op.result_count());
  if (by.rows < 2 || by.rows * by.columns * kinds * kWidest > limits.scratch_bytes) return false;
  LoweredOp made = lowered;
  if (by.workgroups > 1) {
    for (const ElementType type : accumulators_of(op)) {
      made.temporaries.emplace_back(type, Dims{by.workgroups, by.results});
    }
  }
  TENON_ASSIGN(bool taken, try_kernel(made, fused.op, "_columns", [&](KernelMaker& maker) {
                 ColumnKernel(maker, fused, op, by).combine_runs();
               }));
  if (taken && by.workgroups > 1) {
    TENON_ASSIGN(taken, try_kernel(made, fused.op, "_found", [&](KernelMaker& maker) {
                   ColumnKernel(maker, fused, op, by).combine_workgroups(tuning);
                 }));
  }
  if (taken) lowered = std::move(made);
  return taken;
}

}  // namespace

bool is_shared_by_columns(const ScheduleInput& input) {
  const CostModel& cost = input.limits.cost;
  const Instruction* op = column_op(input.fused);
  if (op == nullptr || cost.busy_lanes < cost.many_lanes || !reads_adjacent(*op, cost))
    return false;
  const int64_t results = element_count(op->result_type().dims());
  return results >= cost.adjacent_results && results < cost.busy_lanes &&
         count_leaves(*op) >= cost.shared_leaves / 2;
}

constinit const Schedule kSharedColumns = {
    "shared-columns",
    "a reduce or a product with few rows, whose adjacent results read adjacent elements",
    "lanes in rows and columns: a column shares the leaves of a result, a row reads adjacent "
    "elements; workgroups too share leaves if there are few results",
    kColumnParameters,
    estimate_columns,
    emit_columns};

}  // namespace tenon::hlo::lower
