#include <algorithm>

#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

RegionFunction::RegionFunction(Evaluator& evaluator, const Computation& region,
                               const EvalFrame& frame)
    : evaluator_(evaluator), region_(region), frame_(frame) {
  result_count_ = region.return_instruction() ? region.return_instruction()->operand_count() : 0;
  flat_ = flatten(region, frame);
}

bool RegionFunction::flatten(const Computation& region, const EvalFrame& frame) {
  const auto add_register = [&](const Instruction* def) {
    register_of_[def] = static_cast<uint32_t>(registers_.size());
    registers_.emplace_back();
    return register_of_[def];
  };
  for (size_t i = 0; i < region.parameter_count(); ++i) add_register(region.parameter(i).def);
  for (const Instruction& op : region) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Value operand = op.operand(i);
      if (register_of_.count(operand.def) != 0) continue;
      // A captured scalar is constant during the call.
      const EvalValue* captured = frame.find(operand);
      if (captured == nullptr || captured->tensor == nullptr || (*captured)->rank() != 0 ||
          operand.def->result_count() != 1) {
        return false;
      }
      registers_[add_register(operand.def)] = (*captured)->get(0);
    }
    if (op.code() == OpCode::kReturn) {
      for (size_t i = 0; i < op.operand_count(); ++i) {
        result_registers_.push_back(register_of_[op.operand(i).def]);
      }
      return true;
    }
    if (op.result_count() != 1 || !op.result_type().is_tensor() || op.result_type().rank() != 0 ||
        op.result_type().is_quantized()) {
      return false;
    }
    add_register(&op);
    if (!flatten_op(op)) return false;
  }
  return false;
}

bool RegionFunction::flatten_op(const Instruction& op) {
  const uint32_t result = register_of_[&op];
  if (op.code() == OpCode::kConstant) {
    const auto* value = op.attr<DenseAttr>(AttrKey::value);
    registers_[result] = tensor_from_literal(value->values, evaluator_.wide()).get(0);
    return true;
  }
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.operand_type(i).is_tensor() || op.operand_type(i).rank() != 0 ||
        op.operand_type(i).is_quantized()) {
      return false;
    }
  }
  ElementStep step;
  step.context = element_context(op, evaluator_.wide());
  step.function = element_function(op, step.context);
  if (op.code() == OpCode::kReshape || op.code() == OpCode::kBroadcastInDim) {
    step.function = [](const ElementContext&, const Scalar* x) { return x[0]; };
  }
  if (step.function == nullptr || op.operand_count() > 3) return false;
  step.operand_count = static_cast<uint32_t>(op.operand_count());
  for (uint32_t i = 0; i < step.operand_count; ++i) {
    step.operands[i] = register_of_[op.operand(i).def];
  }
  step.result = result;
  steps_.push_back(step);
  return true;
}

Status RegionFunction::operator()(const Scalar* arguments, Scalar* results) {
  if (flat_) {
    std::copy(arguments, arguments + region_.parameter_count(), registers_.begin());
    for (const ElementStep& step : steps_) {
      Scalar operands[3];
      for (uint32_t i = 0; i < step.operand_count; ++i) {
        operands[i] = registers_[step.operands[i]];
      }
      registers_[step.result] = step.function(step.context, operands);
    }
    for (size_t i = 0; i < result_registers_.size(); ++i) {
      results[i] = registers_[result_registers_[i]];
    }
    return {};
  }
  std::vector<EvalValue> values;
  for (size_t i = 0; i < region_.parameter_count(); ++i) {
    Tensor scalar = evaluator_.tensor(region_.parameter(i).type().element_type(), {});
    scalar.set(0, arguments[i]);
    values.push_back(EvalValue::of(std::move(scalar)));
  }
  TENON_ASSIGN(const std::vector<EvalValue> out,
               evaluator_.run_computation(region_, values, &frame_));
  for (size_t i = 0; i < out.size(); ++i) results[i] = out[i]->get(0);
  return {};
}

}  // namespace tenon::hlo
