#include "hlo/lower/lower_op.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "hlo/lower/elements/index_math.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/schedules/control_form.h"
#include "hlo/lower/schedules/row_passes.h"
#include "hlo/lower/schedules/schedules.h"
#include "hlo/lower/schedules/workgroup.h"

namespace tenon::hlo::lower {
namespace {

// Constants inside regions that must lie in memory.
void collect_constants(const Computation& region, std::vector<Value>& found) {
  for (const Instruction& op : region) {
    if (op.code() == OpCode::kConstant && !is_inline_constant(op)) {
      found.push_back({const_cast<Instruction*>(&op), 0});
    }
    for (size_t i = 0; i < op.region_count(); ++i) collect_constants(op.region(i), found);
  }
}

// Values that kernels of `op` read from memory, each once.
std::vector<Value> inputs_of(const Instruction& op) {
  std::vector<Value> inputs;
  for (const Value value : all_operands(op)) {
    const bool array = value.type().is_tensor();
    const bool inlined = value.def->code() == OpCode::kConstant && is_inline_constant(*value.def);
    const bool known = std::find(inputs.begin(), inputs.end(), value) != inputs.end();
    if (array && !inlined && !known) inputs.push_back(value);
  }
  for (size_t i = 0; i < op.region_count(); ++i) collect_constants(op.region(i), inputs);
  return inputs;
}

bool is_empty(const Type& type) { return element_count(type.dims()) == 0; }

// --- One element a lane

// Whether two results can be stored by one kernel, and which come first. A result that another
// reads at an index of its own is stored by an earlier kernel and read from memory, not computed
// again.
class Dependencies {
 public:
  explicit Dependencies(const FusedOp& fused) : fused_(fused) {}

  /// Whether `value` needs elements of a result that is not stored yet, other than those at its own
  /// index.
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

// Results of one shape: one kernel over its indices. Those that are `stored` are read.
Status lower_elements(LoweredOp& lowered, const FusedOp& fused,
                      const std::vector<uint32_t>& results, const std::vector<bool>& stored,
                      TuningParameters& tuning, std::string_view suffix) {
  return add_kernel(lowered, fused.op, suffix, [&](KernelMaker& maker) {
    maker.inputs();
    for (uint32_t r = 0; r < stored.size(); ++r) {
      if (!stored[r] || is_empty(fused.results[r].type())) continue;
      maker.e().bind(fused.results[r], maker.result(r, kernel::Access::kIn));
    }
    std::vector<kernel::MemoryId> memories;
    for (const uint32_t r : results) memories.push_back(maker.result(r));
    for_each_index(
        maker.b(), fused.results[results[0]].type().dims(), tuning,
        [&](const Values& index) { store_results(maker, fused, results, memories, index); });
  });
}

Status lower_by_elements(LoweredOp& lowered, const FusedOp& fused, TuningParameters& tuning) {
  std::vector<bool> stored(fused.results.size());
  std::vector<uint32_t> rest;
  for (uint32_t r = 0; r < fused.results.size(); ++r) {
    // An empty result needs neither a store nor a load.
    stored[r] = is_empty(fused.results[r].type());
    if (!stored[r]) rest.push_back(r);
  }
  // Takes the results in the order in which they are computed.
  const auto place = [&](uint32_t r) {
    return std::ranges::find(fused.inner, fused.results[r].def) - fused.inner.begin();
  };
  std::ranges::stable_sort(rest, {}, place);
  Dependencies dependencies(fused);
  for (int part = 0; !rest.empty(); ++part) {
    std::vector<uint32_t> now;
    std::vector<uint32_t> later;
    for (const uint32_t r : rest) {
      const bool fits =
          now.empty() || fused.results[r].type().dims() == fused.results[now[0]].type().dims();
      const bool waits =
          fused.op.code() == OpCode::kFusion && dependencies.has_to_wait(fused.results[r], stored);
      (fits && !waits ? now : later).push_back(r);
    }
    TENON_TRY(lower_elements(lowered, fused, now, stored, tuning,
                             part == 0 ? "" : fmt::format("_{}", part)));
    for (const uint32_t r : now) stored[r] = true;
    rest = std::move(later);
  }
  return {};
}

// The op whose results are those of the fusion, if it computes nothing else.
const Instruction* only_op(const FusedOp& fused) {
  const Instruction* only = fused.inner.size() == 1 ? fused.inner[0] : nullptr;
  if (only == nullptr || only->result_count() != fused.results.size()) return nullptr;
  for (uint32_t r = 0; r < fused.results.size(); ++r) {
    if (fused.results[r] != Value{const_cast<Instruction*>(only), r}) return nullptr;
  }
  return only;
}

// A workgroup for each result of `op`, whose lanes share its elements.
Status lower_over_lanes(LoweredOp& lowered, const FusedOp& fused, const Instruction& op) {
  return add_kernel(lowered, fused.op, "_rows", [&](KernelMaker& maker) {
    maker.inputs();
    std::vector<kernel::MemoryId> memories;
    for (uint32_t r = 0; r < op.result_count(); ++r) memories.push_back(maker.result(r));
    const Values index = maker.b().grid(op.result_type().dims());
    const Elements results = op.info().fusion == FusionKind::kReduces
                                 ? emit_reduce(maker.e(), op, index, true)
                                 : emit_dot(maker.e(), op, index, true);
    for (size_t r = 0; r < results.size(); ++r) maker.e().store(results[r], memories[r], index);
  });
}

// Whether the lanes of a workgroup share a reduction: where there are enough elements to share, and
// either neighbours lie beside each other or there is little else to do at once.
bool prefers_lanes(const Instruction& op, TuningParameters& tuning) {
  if (op.code() != OpCode::kReduce && op.code() != OpCode::kDotGeneral) return false;
  const Dims& dims = op.operand_type(0).dims();
  const auto* dot = op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const I64s& reduced = dot != nullptr ? dot->lhs_contracting : op.i64s(AttrKey::dimensions);
  int64_t size = 1;
  for (const int64_t d : reduced) size *= dims[static_cast<size_t>(d)];
  const int64_t results = element_count(op.result_type().dims());
  const bool minor = contains(reduced, static_cast<int64_t>(dims.size()) - 1);
  const bool good = size >= 64 && ((op.code() == OpCode::kReduce && minor) || results < 64);
  return tuning.choose("reduce_lanes", good ? 1 : 0, {0, 1}) != 0;
}

Status lower_into(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits) {
  const bool nothing = op.code() == OpCode::kFusion && op.result_count() == 0;
  if (nothing || (is_empty(op.result_type()) && op.result_count() == 1)) return {};
  if (const KernelsFunction kernels = op.info().kernels; kernels != nullptr) {
    return is_empty(op.result_type()) ? Status() : kernels(lowered, op, tuning, limits);
  }
  const bool control = is_control(op.code());
  const ControlForm form = control ? control_form(op, limits) : ControlForm::kLane;
  if (form == ControlForm::kWorkgroup) {
    return lower_in_workgroup(lowered, op, *workgroup_form(op, limits), tuning);
  }
  if (form == ControlForm::kSteps || !is_elemental(op)) {
    return Status(ErrorCode::kUnimplemented, fmt::format("{}: there is no lowering", op.name()))
        .at(position_of(op.location()));
  }
  const FusedOp fused(op);
  for (const auto take : {lower_update, lower_tiled_dot, lower_in_two_stages, lower_row_fusion,
                          lower_tiled_transpose}) {
    TENON_ASSIGN(const bool taken, take(lowered, fused, tuning, limits));
    if (taken) return {};
  }
  const bool any_empty = std::ranges::any_of(op.result_types(), is_empty);
  const Instruction* only = only_op(fused);
  if (only != nullptr && !any_empty && prefers_lanes(*only, tuning)) {
    return lower_over_lanes(lowered, fused, *only);
  }
  return lower_by_elements(lowered, fused, tuning);
}

}  // namespace

bool is_inline_constant(const Instruction& op) {
  const auto* value = op.attr<DenseAttr>(AttrKey::value);
  return value != nullptr && value->values.element_count() == 1;
}

Result<LoweredOp> lower_op(const Instruction& op, TuningParameters& tuning,
                           const LowerLimits& limits) {
  LoweredOp lowered;
  lowered.inputs = inputs_of(op);
  TENON_TRY(lower_into(lowered, op, tuning, limits));
  return lowered;
}

}  // namespace tenon::hlo::lower
