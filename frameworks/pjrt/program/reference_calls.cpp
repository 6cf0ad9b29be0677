#include "frameworks/pjrt/program/reference_calls.h"

#include <cstring>

#include "core/runtime/foreign/host_call_arrays.h"
#include "hlo/evaluator/scalars/scalar.h"
#include "hlo/lower/foreign_calls.h"

namespace tenon::pjrt {
namespace {

std::string_view target_of(const hlo::Instruction& op) {
  return op.text(hlo::AttrKey::call_target_name);
}

}  // namespace

Status ReferenceCalls::add(const hlo::Computation& computation,
                           const runtime::HostFunctionTable& functions) {
  for (const hlo::Instruction& op : computation) {
    for (size_t r = 0; r < op.region_count(); ++r) TENON_TRY(add(op.region(r), functions));
    if (op.code() != hlo::OpCode::kCustomCall) continue;
    const auto function = functions.find(target_of(op));
    if (function == functions.end()) continue;
    Call call;
    TENON_ASSIGN(call.foreign, hlo::lower::foreign_call_of(op));
    program::CustomCall step;
    step.target = target_of(op);
    TENON_ASSIGN(call.run, function->second(step, call.foreign));
    calls_.emplace(&op, std::move(call));
  }
  return {};
}

Result<ReferenceCalls> ReferenceCalls::prepare(const hlo::Module& module,
                                               const runtime::HostFunctionTable& functions) {
  ReferenceCalls calls;
  for (const auto& function : module.functions()) TENON_TRY(calls.add(*function, functions));
  return calls;
}

void ReferenceCalls::install(hlo::Evaluator& evaluator, int64_t execution) const {
  for (const auto& [op, prepared] : calls_) {
    evaluator.set_custom_call(std::string(target_of(*op)),
                              [this, execution](hlo::Evaluator&, const hlo::Instruction& at,
                                                const std::vector<hlo::EvalValue>& operands) {
                                return call(at, operands, execution);
                              });
  }
}

Result<std::vector<hlo::EvalValue>> ReferenceCalls::call(
    const hlo::Instruction& op, const std::vector<hlo::EvalValue>& operands,
    int64_t execution) const {
  const Call& prepared = calls_.at(&op);
  runtime::HostCallArrays arrays(prepared.foreign);
  std::vector<Literal> literals;
  literals.reserve(operands.size());
  for (const hlo::EvalValue& operand : operands) {
    if (operand.tensor == nullptr) continue;
    const Literal& literal = literals.emplace_back(hlo::literal_from_tensor(*operand));
    arrays.add_operand(literal.shape(), literal.data());
  }
  for (const hlo::Type& type : op.result_types()) {
    if (type.is_tensor()) arrays.add_result(type.shape());
  }
  TENON_TRY(prepared.run(arrays.frame(0, {execution})));
  std::vector<hlo::EvalValue> values;
  size_t next = 0;
  for (const hlo::Type& type : op.result_types()) {
    hlo::EvalValue& value = values.emplace_back();
    if (!type.is_tensor()) continue;
    TENON_ASSIGN(const Literal literal,
                 Literal::from_bytes(type.shape(), arrays.results()[next++].bytes));
    value = hlo::EvalValue::of(hlo::tensor_from_literal(literal, false));
  }
  return values;
}

}  // namespace tenon::pjrt
