// Control flow, calls and structure.
#include <algorithm>

#include "hlo/decomposition/linalg/custom_calls.h"
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/evaluator/ops/rules.h"

namespace tenon::hlo {
namespace {

Evaluator::Values call_function(const EvalCall& c, std::string_view name) {
  const Computation* callee = c.e.module().find_function(name);
  if (callee == nullptr || callee->is_declaration()) {
    return not_found("{}: function @{} is not defined", c.op.name(), name);
  }
  return c.e.run_computation(*callee, c.operands, nullptr);
}

bool is_of_type(const EvalValue& value, const Type& type) {
  if (type.is_tensor()) {
    return value.tensor != nullptr &&
           compatible(Type(type.shape()), Type::tensor(value->type(), value->dims()));
  }
  if (!type.is_tuple()) return value.tensor == nullptr;
  const std::vector<Type>& types = type.elements();
  return value.tensor == nullptr && std::equal(value.elements.begin(), value.elements.end(),
                                               types.begin(), types.end(), is_of_type);
}

std::string type_text(const EvalValue& value) {
  if (value.tensor == nullptr) return "no array";
  return Shape(value->type(), value->dims()).to_string();
}

// The answer of a function from outside, which may be of any type.
Evaluator::Values checked_answers(const Instruction& op, std::vector<EvalValue> values) {
  const std::string_view target = op.text(AttrKey::call_target_name);
  if (values.size() != op.result_count()) {
    return invalid_argument("custom call @{} gave {} results, expected {}", target, values.size(),
                            op.result_count());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_of_type(values[i], op.result_type(i))) continue;
    return invalid_argument("custom call @{} gave {} as result {}, expected {}", target,
                            type_text(values[i]), i, op.result_type(i).to_string());
  }
  return values;
}

}  // namespace

Evaluator::Values Evaluator::custom_call(const Instruction& op,
                                         const std::vector<EvalValue>& operands) {
  const std::string target(op.text(AttrKey::call_target_name));
  const auto handler = custom_calls_.find(target);
  if (handler == custom_calls_.end()) {
    return unimplemented("stablehlo.custom_call: target @{} is unknown to this device", target);
  }
  TENON_ASSIGN(std::vector<EvalValue> values, handler->second(*this, op, operands));
  return checked_answers(op, std::move(values));
}

namespace evaluate {

using Values = Evaluator::Values;

Values call(const EvalCall& c) { return call_function(c, c.op.text(AttrKey::callee)); }

Values case_op(const EvalCall& c) {
  const int64_t index = c.operands[0]->integer(0);
  const auto count = static_cast<int64_t>(c.op.region_count());
  const int64_t chosen = index < 0 || index >= count ? count - 1 : index;
  return c.e.run_computation(c.op.region(static_cast<size_t>(chosen)), {}, &c.frame);
}

Values composite(const EvalCall& c) {
  if (decomposition::function_of_composite(c.op)) return c.e.decomposed(c.op, c.operands, c.frame);
  return call_function(c, c.op.text(AttrKey::decomposition));
}

Values custom_call(const EvalCall& c) {
  if (decomposition::linalg_call(c.op) != nullptr) {
    return c.e.decomposed(c.op, c.operands, c.frame);
  }
  return c.e.custom_call(c.op, c.operands);
}

Values fusion(const EvalCall& c) {
  return c.e.run_computation(c.op.region(0), c.operands, &c.frame);
}

Values get_tuple_element(const EvalCall& c) {
  const auto index = static_cast<size_t>(c.op.integer(AttrKey::index));
  return std::vector<EvalValue>{c.operands[0].elements[index]};
}

Values if_op(const EvalCall& c) {
  return c.e.run_computation(c.op.region(c.operands[0]->integer(0) != 0 ? 0 : 1), {}, &c.frame);
}

Values optimization_barrier(const EvalCall& c) { return c.operands; }

Values tuple(const EvalCall& c) { return std::vector<EvalValue>{EvalValue{nullptr, c.operands}}; }

Values while_op(const EvalCall& c) {
  std::vector<EvalValue> state = c.operands;
  while (true) {
    TENON_ASSIGN(const std::vector<EvalValue> go_on,
                 c.e.run_computation(c.op.region(0), state, &c.frame));
    if (go_on[0]->integer(0) == 0) return state;
    TENON_TRY(c.e.tick());
    TENON_ASSIGN(state, c.e.run_computation(c.op.region(1), state, &c.frame));
  }
}

}  // namespace evaluate
}  // namespace tenon::hlo
