// Elementwise ops on arrays. If the op allows it (select's predicate, clamp's limits), a rank-0
// operand stands for an array of equal elements.
#include "hlo/evaluator/ops/rules.h"

namespace tenon::hlo {
Evaluator::Values evaluate::clamp(const EvalCall& c) {
  const ElementContext context = element_context(c.op, c.e.wide());
  const ElementFunction max = scalar::maximum.of(context);
  const ElementFunction min = scalar::minimum.of(context);
  const Tensor& low = *c.operands[0];
  const Tensor& x = *c.operands[1];
  const Tensor& high = *c.operands[2];
  Tensor result = c.e.tensor(x.type(), x.dims());
  for (int64_t i = 0; i < x.count(); ++i) {
    const Scalar from_below[2] = {x.get(i), low.get(low.rank() == 0 ? 0 : i)};
    const Scalar from_above[2] = {max(context, from_below), high.get(high.rank() == 0 ? 0 : i)};
    result.set(i, min(context, from_above));
  }
  return one(std::move(result));
}

Evaluator::Values evaluate_elementwise(Evaluator& e, const Instruction& op, Operands operands) {
  const ElementContext context = element_context(op, e.wide());
  const ElementFunction function = element_function(op, context);
  if (function == nullptr || operands.size() > 3) {
    return unimplemented("{} is not defined on {}", op.name(), name_of(context.operand_type));
  }
  // Rank-0 operands are broadcast, so the dimensions are those of the largest operand.
  const Dims* dims = &operands[0]->dims();
  for (const EvalValue& operand : operands) {
    if (operand->rank() > static_cast<int64_t>(dims->size())) dims = &operand->dims();
  }
  Tensor result = e.tensor(context.result_type, *dims);
  Scalar x[3];
  for (int64_t i = 0; i < result.count(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) {
      x[k] = operands[k]->get(operands[k]->rank() == 0 ? 0 : i);
    }
    result.set(i, function(context, x));
  }
  return one(std::move(result));
}

}  // namespace tenon::hlo
