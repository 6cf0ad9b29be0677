#include "hlo/lower/lower_op.h"

#include <algorithm>

#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/library_calls.h"
#include "hlo/lower/schedules/control_form.h"
#include "hlo/lower/schedules/own_kernels.h"
#include "hlo/lower/schedules/products/attention.h"
#include "hlo/lower/schedules/schedules.h"
#include "hlo/lower/schedules/workgroup.h"

namespace tenon::hlo::lower {
namespace {

// Collects constants inside regions that must be in memory.
void collect_constants(const Computation& region, std::vector<Value>& found) {
  for (const Instruction& op : region) {
    if (op.code() == OpCode::kConstant && !is_inline_constant(op)) {
      found.push_back({const_cast<Instruction*>(&op), 0});
    }
    for (size_t i = 0; i < op.region_count(); ++i) collect_constants(op.region(i), found);
  }
}

// The values that kernels of `op` read from memory, each once.
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

// The time with one element per lane, from the bytes moved and the operations; reductions within a
// fusion count once.
double elements_seconds(const FusedOp& fused, const LoweredOp& lowered, const CostModel& cost) {
  const auto bytes_of = [](Value value) {
    return static_cast<double>(Shape(value.type().element_type(), value.type().dims()).byte_size());
  };
  double bytes = 0;
  for (const Value value : lowered.inputs) bytes += bytes_of(value);
  for (const Value value : fused.results) bytes += bytes_of(value);
  double operations = 0;
  for (const Instruction* op : fused.inner) {
    double work = 1;
    for (const Type& type : op->result_types()) {
      work = std::max(work, static_cast<double>(element_count(type.dims())));
    }
    const Category category = op->info().category;
    if (category == Category::kReduction) {
      work = std::max(work, static_cast<double>(element_count(op->operand_type(0).dims())));
    } else if (op->code() == OpCode::kDotGeneral) {
      const I64s& contracted = op->attr<DotDims>(AttrKey::dot_dimension_numbers)->lhs_contracting;
      for (const int64_t d : contracted) {
        work *= 2 * static_cast<double>(op->operand_type(0).dims()[static_cast<size_t>(d)]);
      }
    } else if (op->code() == OpCode::kConvolution) {
      const Dims& weights = op->operand_type(1).dims();
      const auto outputs = static_cast<size_t>(convolution_of(*op).kernel.batch);
      work *= 2 * static_cast<double>(element_count(weights)) /
              static_cast<double>(std::max<int64_t>(weights[outputs], 1));
    }
    operations += work;
  }
  return cost.seconds(bytes, operations);
}

// The schedules that fit, fastest first.
std::vector<const Schedule*> candidates(const ScheduleInput& input, TuningParameters& tuning) {
  std::vector<std::pair<double, const Schedule*>> found;
  for (const Schedule& schedule : schedules()) {
    const std::optional<bool> use = tuning.use(schedule.name);
    const bool last = schedule.name == kElements.name;
    if (use == false && !last) continue;
    const std::optional<double> seconds = schedule.estimate(input);
    if (seconds) found.emplace_back(use == true && !last ? -1 : *seconds, &schedule);
  }
  std::ranges::stable_sort(found, {}, &std::pair<double, const Schedule*>::first);
  std::vector<const Schedule*> sorted;
  for (const auto& [seconds, schedule] : found) sorted.push_back(schedule);
  return sorted;
}

Status lower_by_schedule(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                         const LowerLimits& limits) {
  const FusedOp fused(op);
  const ScheduleInput input = {fused, lowered, limits,
                               elements_seconds(fused, lowered, limits.cost)};
  for (const Schedule* schedule : candidates(input, tuning)) {
    TENON_ASSIGN(const bool taken, schedule->emit(lowered, fused, tuning, limits));
    if (taken) return {};
  }
  return internal_error("{}: no schedule takes it", label_of(op));
}

// Other schedules would compute a row of scores for each element of the result.
Status lower_attention(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                       const LowerLimits& limits) {
  const bool may = tuning.use(kAttention.name) != false;
  TENON_ASSIGN(const bool taken,
               may ? kAttention.emit(lowered, FusedOp(op), tuning, limits) : Taken(false));
  if (taken) return {};
  return resource_exhausted("{}: its blocks of scores do not fit", label_of(op));
}

Status lower_into(LoweredOp& lowered, const Instruction& op, TuningParameters& tuning,
                  const LowerLimits& limits) {
  const bool nothing = op.code() == OpCode::kFusion && op.result_count() == 0;
  if (nothing || (has_no_elements(op.result_type()) && op.result_count() == 1)) return {};
  if (const KernelsFunction kernels = op.info().kernels; kernels != nullptr) {
    return has_no_elements(op.result_type()) ? Status() : kernels(lowered, op, tuning, limits);
  }
  if (sort_of_selection(op) != nullptr) return lower_selection(lowered, op, tuning, limits);
  if (is_attention(op)) return lower_attention(lowered, op, tuning, limits);
  if (scatter_of_fusion(op) != nullptr) return lower_scatter(lowered, op, tuning, limits);
  const bool control = is_control(op.code());
  const ControlForm form = control ? control_form(op, limits) : ControlForm::kLane;
  if (form == ControlForm::kWorkgroup) {
    return lower_in_workgroup(lowered, op, *workgroup_form(op, limits), tuning);
  }
  if (form == ControlForm::kSteps || !is_elemental(op)) {
    return Status(ErrorCode::kUnimplemented, fmt::format("{}: there is no lowering", op.name()))
        .at(position_of(op.location()));
  }
  return lower_by_schedule(lowered, op, tuning, limits);
}

}  // namespace

bool keeps_order(const Instruction& op) {
  if (op.code() == OpCode::kReshape) return true;
  if (op.code() != OpCode::kBroadcastInDim) return false;
  const Dims& from = op.operand_type(0).dims();
  const I64s& to = op.i64s(AttrKey::broadcast_dimensions);
  if (element_count(from) != element_count(op.result_type().dims())) return false;
  int64_t last = -1;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    if (to[i] <= last) return false;
    last = to[i];
  }
  return true;
}

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

Result<LoweredOp> LoweringCache::lower(const Instruction& op, int level, TuningParameters& tuning,
                                       const LowerLimits& limits) {
  const std::pair key(&op, level);
  auto known = known_.find(key);
  if (known == known_.end()) {
    ++lowered_;
    known = known_.emplace(key, lower_op(op, tuning, limits)).first;
  }
  return known->second;
}

}  // namespace tenon::hlo::lower
