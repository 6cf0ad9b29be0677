#include "hlo/decomposition/math_builder.h"

#include "hlo/decomposition/decomposition_util.h"

namespace tenon::hlo::decomposition {

Expr rounded_to_bits(const Expr& x, int mantissa_bits) {
  const int64_t exponent_bits = x.type() == ElementType::kF64 ? 11 : 8;
  Builder& b = x.builder();
  return {b, b.make(OpCode::kReducePrecision, {x.value()},
                    {{AttrKey::exponent_bits, exponent_bits},
                     {AttrKey::mantissa_bits, int64_t{mantissa_bits}}})};
}

Expr polynomial(const Expr& x, std::span<const double> coefficients) {
  Expr sum = x.constant(coefficients[0]);
  for (const double coefficient : coefficients.subspan(1)) sum = sum * x + coefficient;
  return sum;
}

ElementType computing_type(ElementType type) {
  return is_float(type) && type != ElementType::kF64 ? ElementType::kF32 : type;
}

namespace {

Expr operand(Builder& b, const Instruction& op, size_t i) {
  return convert(Expr(b, op.operand(i)), computing_type(op.operand_type(i).element_type()));
}

Values rounded_result(Builder& b, const Instruction& op, const Expr& result) {
  const ElementType type = op.result_type().element_type();
  return finished(b, {b.ok() ? b.convert(result.value(), type) : Value{}});
}

}  // namespace

Values elementwise(Builder& b, const Instruction& op, RealFunction function) {
  TENON_TRY(check_static(op));
  return rounded_result(b, op, function(operand(b, op, 0)));
}

Values elementwise(Builder& b, const Instruction& op, RealFunction2 function) {
  TENON_TRY(check_static(op));
  return rounded_result(b, op, function(operand(b, op, 0), operand(b, op, 1)));
}

}  // namespace tenon::hlo::decomposition
