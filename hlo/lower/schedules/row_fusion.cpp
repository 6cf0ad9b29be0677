// Row fusions: reductions over the minor dimensions, with ops on the rows before, between and after
// them.
//
// A workgroup processes a row: each reduction is one over its lanes, and its result is available to
// everything after it; a value that several passes need is kept in scratch. Short rows are
// processed by one lane each.
#include <algorithm>

#include "hlo/lower/elements/reduction.h"
#include "hlo/lower/elements/rules.h"
#include "hlo/lower/schedules/schedules.h"

namespace tenon::hlo::lower {
namespace {

using kernel::Builder;
using kernel::MemoryId;

constexpr int64_t kPartialBytes = 4 << 10;

// The values of a row fusion are arrays of rows, or have one number per row.
struct RowFusion {
  Dims rows;
  Dims row;
  std::vector<const Instruction*> reductions;

  Dims whole() const {
    Dims dims = rows;
    dims.insert(dims.end(), row.begin(), row.end());
    return dims;
  }
};

bool reduces_rows(const Instruction& op, const RowFusion& fusion) {
  const Dims extents = reduced_extents(op);
  return op.operand_type(0).dims() == fusion.whole() && op.result_type().dims() == fusion.rows &&
         extents == fusion.row && op.i64s(AttrKey::dimensions).size() == fusion.row.size() &&
         std::ranges::all_of(op.i64s(AttrKey::dimensions), [&](int64_t d) {
           return d >= static_cast<int64_t>(fusion.rows.size());
         });
}

// The rows of a fusion; without reductions if it is not a row fusion.
RowFusion row_fusion_of(const FusedOp& fused) {
  RowFusion fusion;
  for (const Instruction* op : fused.inner) {
    if (op->code() != OpCode::kReduce) continue;
    if (fusion.reductions.empty()) {
      fusion.rows = op->result_type().dims();
      fusion.row = reduced_extents(*op);
    }
    if (reduces_rows(*op, fusion)) fusion.reductions.push_back(op);
  }
  const bool fits = std::ranges::all_of(fused.results, [&](Value value) {
    const Dims& dims = value.type().dims();
    return dims == fusion.rows || dims == fusion.whole();
  });
  const int64_t row = element_count(fusion.row);
  const bool loops = element_count(fusion.rows) > 0 && row > 0 && row < int64_t{1} << 31;
  if (fused.inner.size() == 1 || !fits || !loops) fusion.reductions.clear();
  return fusion;
}

class RowKernel {
 public:
  RowKernel(KernelMaker& maker, const FusedOp& fused, const RowFusion& fusion,
            int64_t scratch_bytes)
      : maker_(maker), b_(maker.b()), fused_(fused), fusion_(fusion), scratch_(scratch_bytes) {
    maker.inputs();
    for (uint32_t r = 0; r < fused.results.size(); ++r) {
      const bool of_rows = fused.results[r].type().dims() == fusion.whole();
      (of_rows ? whole_ : single_).push_back(r);
      (of_rows ? whole_memories_ : single_memories_).push_back(maker.result(r));
    }
  }

  void in_workgroup(bool keep) {
    const Values row = b_.grid(fusion_.rows);
    for (const Instruction* reduce : fusion_.reductions) {
      for (size_t i = 0; keep && i < reduce->operand_count() / 2; ++i) {
        put_in_scratch(reduce->operand(i), row);
      }
      maker_.e().provide(*reduce, row, emit_reduce(maker_.e(), *reduce, row, true));
    }
    store_results(maker_, fused_, single_, single_memories_, row);
    if (whole_.empty()) return;
    b_.lanes(fusion_.row, [&](const Values& at) {
      store_results(maker_, fused_, whole_, whole_memories_, joined(row, at));
    });
  }

  // A short row is in registers, whose elements are computed once.
  void in_registers(TuningParameters& tuning) {
    const std::vector<Values> places = constant_indices(b_, fusion_.row);
    for_each_index(b_, fusion_.rows, tuning, [&](const Values& row) {
      for (const Instruction* reduce : fusion_.reductions)
        maker_.e().provide(*reduce, row, reduced(*reduce, row, places));
      store_results(maker_, fused_, single_, single_memories_, row);
      for (const Values& at : places) {
        for (const uint32_t r : whole_) maker_.e().element(fused_.results[r], joined(row, at));
      }
      for (const Values& at : places)
        store_results(maker_, fused_, whole_, whole_memories_, joined(row, at));
    });
  }

  void in_lanes(TuningParameters& tuning) {
    for_each_index(b_, fusion_.rows, tuning, [&](const Values& row) {
      for (const Instruction* reduce : fusion_.reductions) {
        maker_.e().provide(*reduce, row, emit_reduce(maker_.e(), *reduce, row, false));
      }
      store_results(maker_, fused_, single_, single_memories_, row);
      if (whole_.empty()) return;
      for_each_serially(b_, fusion_.row, [&](const Values& at) {
        store_results(maker_, fused_, whole_, whole_memories_, joined(row, at));
      });
    });
  }

 private:
  Elements reduced(const Instruction& reduce, const Values& row,
                   const std::vector<Values>& places) {
    const LeafReduction reduction = leaves_of_reduce(maker_.e(), reduce, row, true);
    Values combined = reduction.spec.inits;
    for (const Values& at : places) {
      const Values leaf = reduction.spec.leaf(at);
      combined.insert(combined.end(), leaf.begin(), leaf.end());
      combined = reduction.spec.combine(combined);
    }
    return reduction.rounded(ElementEmitter::unflat(combined, reduction.types));
  }

  static Values joined(const Values& row, const Values& at) {
    Values index = row;
    index.insert(index.end(), at.begin(), at.end());
    return index;
  }

  // Stores the row of a computed value with several uses in scratch, if there is room for it.
  void put_in_scratch(Value value, const Values& row) {
    ElementEmitter& e = maker_.e();
    const Value source = e.resolve(value);
    const bool computed = source == value && e.memory_of(value) == kernel::kNone;
    if (!computed || value.def->code() == OpCode::kConstant || value.def->uses().size() < 2) return;
    const int64_t bytes = Shape(value.type().element_type(), fusion_.row).byte_size();
    if (bytes > scratch_) return;
    scratch_ -= bytes;
    const Type type = Type::tensor(value.type().element_type(), fusion_.row);
    const MemoryId memory = b_.scratch("row", memory_type(type), memory_dims(type));
    b_.lanes(fusion_.row,
             [&](const Values& at) { e.store(e.element(value, joined(row, at)), memory, at); });
    e.bind(value, memory, row);
  }

  KernelMaker& maker_;
  Builder& b_;
  const FusedOp& fused_;
  const RowFusion& fusion_;
  int64_t scratch_;
  std::vector<uint32_t> whole_, single_;
  std::vector<MemoryId> whole_memories_, single_memories_;
};

// With one element per lane, the reductions of a row would be computed again for each element of
// it.
double repeated(const ScheduleInput& input, const RowFusion& fusion) {
  const bool whole = std::ranges::any_of(
      input.fused.results, [&](Value value) { return value.type().dims() == fusion.whole(); });
  return whole ? static_cast<double>(element_count(fusion.row)) : 1;
}

// Whether there is much to do for each row beside its elements, which lanes of many rows do
// together: a math function, or a reduction to several numbers.
bool has_work_of_rows(const FusedOp& fused, const RowFusion& fusion) {
  const int64_t rows = element_count(fusion.rows);
  return std::ranges::any_of(fused.inner, [&](const Instruction* op) {
    const bool is_math = is_math_function(*op) && op->code() != OpCode::kRsqrt;
    const bool is_of_rows = element_count(op->result_type().dims()) == rows;
    return is_of_rows && (is_math || op->result_count() > 1);
  });
}

// Whether it reads an array of rows in memory. Rows that are computed from one number each, and
// from one row, are no reason to load along them.
bool reads_rows(const FusedOp& fused, const RowFusion& fusion) {
  return std::ranges::any_of(fused.op.operands(), [&](Value value) {
    const Dims& dims = value.type().dims();
    return dims.size() > fusion.row.size() &&
           std::equal(fusion.row.rbegin(), fusion.row.rend(), dims.rbegin());
  });
}

// Whether there is so much to do for each element that to take rows apart is little beside it: a
// math function, or several reductions.
bool has_work_of_elements(const FusedOp& fused, const RowFusion& fusion) {
  return fusion.reductions.size() > 1 ||
         std::ranges::any_of(fused.inner, [&](const Instruction* op) {
           return is_math_function(*op) && op->result_type().dims() == fusion.whole();
         });
}

// The most elements of a row that lanes have in registers: those of adjacent lanes are vectors,
// which shuffles take from rows of memory.
int64_t most_in_registers(const FusedOp& fused, const RowFusion& fusion, const CostModel& cost) {
  return has_work_of_elements(fused, fusion) ? cost.register_row_and_more : cost.register_row;
}

bool is_in_registers(const FusedOp& fused, const RowFusion& fusion, const LowerLimits& limits) {
  const CostModel& cost = limits.cost;
  const bool converts = std::ranges::any_of(fused.op.operands(), [](Value value) {
    return value.type().is_tensor() && storage_bytes(value.type().element_type()) < 4;
  });
  const int64_t count = element_count(fusion.row);
  return limits.vector_bytes >= cost.wide_register && count > 1 &&
         count <= most_in_registers(fused, fusion, cost) &&
         count * std::ssize(fused.inner) <=
             (converts ? cost.register_row_ops_converted : cost.register_row_ops) &&
         reads_rows(fused, fusion);
}

std::optional<double> estimate_lane(const ScheduleInput& input) {
  const RowFusion fusion = row_fusion_of(input.fused);
  if (fusion.reductions.empty()) return std::nullopt;
  const bool registers = is_in_registers(input.fused, fusion, input.limits);
  return input.elements_seconds / repeated(input, fusion) *
         (registers ? input.limits.cost.register_row_time : 1);
}

std::optional<double> estimate_workgroup(const ScheduleInput& input) {
  const RowFusion fusion = row_fusion_of(input.fused);
  if (fusion.reductions.empty()) return std::nullopt;
  const auto row = static_cast<double>(element_count(fusion.row));
  const CostModel& cost = input.limits.cost;
  const double repeats = repeated(input, fusion);
  double leaves = static_cast<double>(cost.shared_row);
  if (!reads_rows(input.fused, fusion)) {
    leaves = static_cast<double>(cost.shared_leaves);
  } else if (has_work_of_rows(input.fused, fusion)) {
    // Elements that are stored, too, are more work beside it.
    leaves = static_cast<double>(cost.shared_row_and_more) / (repeats > 1 ? 2 : 1);
  }
  const double shared = leaves / row;
  return input.elements_seconds / repeats * shared;
}

Taken emit_rows(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                const LowerLimits& limits, bool in_workgroup) {
  const RowFusion fusion = row_fusion_of(fused);
  if (in_workgroup && limits.scratch_bytes == 0) return false;  // Its lanes share reductions.
  const bool keep = tuning.choose_flag(parameters::kRowScratch, true);
  // Lanes that share a reduction need memory for their parts.
  const auto reductions = static_cast<int64_t>(fusion.reductions.size());
  const int64_t room = limits.scratch_bytes - reductions * kPartialBytes;
  return try_kernel(lowered, fused.op, "_rows", [&](KernelMaker& maker) {
    RowKernel kernel(maker, fused, fusion, room);
    if (in_workgroup) return kernel.in_workgroup(keep);
    if (is_in_registers(fused, fusion, limits)) return kernel.in_registers(tuning);
    kernel.in_lanes(tuning);
  });
}

Taken emit_lane(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                const LowerLimits& limits) {
  return emit_rows(lowered, fused, tuning, limits, false);
}
Taken emit_workgroup(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning,
                     const LowerLimits& limits) {
  return emit_rows(lowered, fused, tuning, limits, true);
}

}  // namespace

constinit const Schedule kRowWorkgroup = {"row-workgroup",
                                          "reductions over minor dimensions, with ops on the rows "
                                          "before, between and after them (softmax, norms)",
                                          "one workgroup per row; its lanes share each reduction; "
                                          "values that several passes need stay in scratch",
                                          {},
                                          estimate_workgroup,
                                          emit_workgroup};
constinit const Schedule kRowLane = {
    "row-lane",
    "the same for short rows",
    "one lane per row; where vectors are wide, the elements of a row of up to 16 are registers",
    {},
    estimate_lane,
    emit_lane};

}  // namespace tenon::hlo::lower
