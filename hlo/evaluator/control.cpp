// Control flow, calls and structure.
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/evaluator/evaluator.h"

namespace tenon::hlo {

Evaluator::Values Evaluator::evaluate_control(const Instruction& op,
                                              const std::vector<EvalValue>& operands,
                                              const Frame& frame) {
  switch (op.code()) {
    case OpCode::kConstant:
      break;
    case OpCode::kIf:
      return run_computation(op.region(operands[0]->integer(0) != 0 ? 0 : 1), {}, &frame);
    case OpCode::kCase: {
      const int64_t index = operands[0]->integer(0);
      const auto count = static_cast<int64_t>(op.region_count());
      const int64_t chosen = index < 0 || index >= count ? count - 1 : index;
      return run_computation(op.region(static_cast<size_t>(chosen)), {}, &frame);
    }
    case OpCode::kWhile:
      return evaluate_while(op, operands, frame);
    case OpCode::kComposite:
      if (decomposition::function_of_composite(op))
        return evaluate_decomposition(op, operands, frame);
      return evaluate_call(op, operands);
    case OpCode::kCall:
      return evaluate_call(op, operands);
    case OpCode::kCustomCall:
      return evaluate_custom_call(op, operands);
    case OpCode::kOptimizationBarrier:
      return operands;
    case OpCode::kTuple:
      return std::vector<EvalValue>{EvalValue{nullptr, operands}};
    case OpCode::kGetTupleElement: {
      const auto index = static_cast<size_t>(op.integer(AttrKey::index));
      return std::vector<EvalValue>{operands[0].elements[index]};
    }
    default:
      break;
  }
  return internal_error("{} is no control op", op.name());
}

Evaluator::Values Evaluator::evaluate_while(const Instruction& op, std::vector<EvalValue> state,
                                            const Frame& frame) {
  while (true) {
    TENON_ASSIGN(const std::vector<EvalValue> go_on, run_computation(op.region(0), state, &frame));
    if (go_on[0]->integer(0) == 0) return state;
    TENON_TRY(tick());
    TENON_ASSIGN(state, run_computation(op.region(1), state, &frame));
  }
}

Evaluator::Values Evaluator::evaluate_call(const Instruction& op,
                                           const std::vector<EvalValue>& operands) {
  const bool composite = op.code() == OpCode::kComposite;
  const std::string_view name = op.text(composite ? AttrKey::decomposition : AttrKey::callee);
  const Computation* callee = module_.find_function(name);
  if (callee == nullptr || callee->is_declaration()) {
    return not_found("{}: function @{} is not defined", op.name(), name);
  }
  return run_computation(*callee, operands, nullptr);
}

Evaluator::Values Evaluator::evaluate_custom_call(const Instruction& op,
                                                  const std::vector<EvalValue>& operands) {
  const std::string target(op.text(AttrKey::call_target_name));
  const auto handler = custom_calls_.find(target);
  if (handler == custom_calls_.end()) {
    return unimplemented("stablehlo.custom_call: target @{} is unknown to this device", target);
  }
  return handler->second(*this, op, operands);
}

}  // namespace tenon::hlo
