#include "hlo/lower/lower_op.h"

#include <algorithm>

#include "hlo/lower/control_form.h"
#include "hlo/lower/index_math.h"
#include "hlo/lower/kernel_maker.h"
#include "hlo/lower/row_passes.h"
#include "hlo/lower/workgroup.h"

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
  std::vector<Value> all = op.operands();
  for (const Value captured : captured_values(op)) all.push_back(captured);
  std::vector<Value> inputs;
  for (const Value value : all) {
    const bool array = value.type().is_tensor();
    const bool inlined = value.def->code() == OpCode::kConstant && is_inline_constant(*value.def);
    const bool known = std::find(inputs.begin(), inputs.end(), value) != inputs.end();
    if (array && !inlined && !known) inputs.push_back(value);
  }
  for (size_t i = 0; i < op.region_count(); ++i) collect_constants(op.region(i), inputs);
  return inputs;
}

bool is_empty(const Type& type) { return element_count(type.dims()) == 0; }

// All results of one shape: one kernel over its indices.
Status lower_elements(LoweredOp& lowered, const Instruction& op,
                      const std::vector<uint32_t>& results, Schedule& schedule,
                      std::string_view suffix) {
  return add_kernel(lowered, op, suffix, [&](KernelMaker& maker) {
    maker.inputs();
    std::vector<kernel::MemoryId> memories;
    for (const uint32_t r : results) memories.push_back(maker.result(r));
    for_each_index(maker.b(), op.result_type(results[0]).dims(), schedule,
                   [&](const Values& index) {
                     for (size_t i = 0; i < results.size(); ++i) {
                       const Value value{const_cast<Instruction*>(&op), results[i]};
                       maker.e().store(maker.e().element(value, index), memories[i], index);
                     }
                   });
  });
}

// A workgroup for each result, whose lanes share its elements.
Status lower_over_lanes(LoweredOp& lowered, const Instruction& op) {
  return add_kernel(lowered, op, "_rows", [&](KernelMaker& maker) {
    maker.inputs();
    std::vector<kernel::MemoryId> memories;
    for (uint32_t r = 0; r < op.result_count(); ++r) memories.push_back(maker.result(r));
    const Values index = maker.b().grid(op.result_type().dims());
    const Elements results = op.code() == OpCode::kReduce ? emit_reduce(maker.e(), op, index, true)
                                                          : emit_dot(maker.e(), op, index, true);
    for (size_t r = 0; r < results.size(); ++r) maker.e().store(results[r], memories[r], index);
  });
}

// Whether the lanes of a workgroup share a reduction: where there are enough elements to share, and
// either neighbours lie beside each other or there is little else to do at once.
bool prefers_lanes(const Instruction& op, Schedule& schedule) {
  if (op.code() != OpCode::kReduce && op.code() != OpCode::kDotGeneral) return false;
  const Dims& dims = op.operand_type(0).dims();
  const auto* dot = op.attr<DotDims>(AttrKey::dot_dimension_numbers);
  const I64s& reduced = dot != nullptr ? dot->lhs_contracting : op.i64s(AttrKey::dimensions);
  int64_t size = 1;
  for (const int64_t d : reduced) size *= dims[static_cast<size_t>(d)];
  const int64_t results = element_count(op.result_type().dims());
  const bool minor = contains(reduced, static_cast<int64_t>(dims.size()) - 1);
  const bool good = size >= 64 && ((op.code() == OpCode::kReduce && minor) || results < 64);
  return schedule.choose("reduce_lanes", good ? 1 : 0, {0, 1}) != 0;
}

Status lower_into(LoweredOp& lowered, const Instruction& op, Schedule& schedule,
                  const LowerLimits& limits) {
  if (is_empty(op.result_type()) && op.result_count() == 1) return {};
  if (op.code() == OpCode::kSort) {
    return is_empty(op.result_type()) ? Status() : lower_sort(lowered, op, schedule, limits);
  }
  if (op.code() == OpCode::kFft) return lower_fft(lowered, op, schedule, limits);
  if (op.code() == OpCode::kScatter) {
    return is_empty(op.result_type()) ? Status() : lower_scatter(lowered, op, schedule);
  }
  const bool control = is_control(op.code());
  const ControlForm form = control ? control_form(op, limits) : ControlForm::kLane;
  if (form == ControlForm::kWorkgroup) return lower_in_workgroup(lowered, op);
  if (form == ControlForm::kSteps || !is_elemental(op)) {
    return Status(ErrorCode::kUnimplemented, fmt::format("{}: there is no lowering", op.name()))
        .at(position_of(op.location()));
  }
  std::vector<uint32_t> rest;
  for (uint32_t r = 0; r < op.result_count(); ++r) {
    if (!is_empty(op.result_type(r))) rest.push_back(r);
  }
  if (rest.size() == op.result_count() && prefers_lanes(op, schedule)) {
    return lower_over_lanes(lowered, op);
  }
  for (int part = 0; !rest.empty(); ++part) {
    std::vector<uint32_t> same;
    std::vector<uint32_t> other;
    for (const uint32_t r : rest) {
      const bool fits = op.result_type(r).dims() == op.result_type(rest[0]).dims();
      (fits ? same : other).push_back(r);
    }
    TENON_TRY(
        lower_elements(lowered, op, same, schedule, part == 0 ? "" : fmt::format("_{}", part)));
    rest = std::move(other);
  }
  return {};
}

}  // namespace

bool is_inline_constant(const Instruction& op) {
  const auto* value = op.attr<DenseAttr>(AttrKey::value);
  return value != nullptr && value->values.element_count() == 1;
}

Result<LoweredOp> lower_op(const Instruction& op, Schedule& schedule, const LowerLimits& limits) {
  LoweredOp lowered;
  lowered.inputs = inputs_of(op);
  TENON_TRY(lower_into(lowered, op, schedule, limits));
  return lowered;
}

}  // namespace tenon::hlo::lower
