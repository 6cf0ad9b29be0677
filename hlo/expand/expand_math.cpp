#include "hlo/expand/expand_math.h"

#include <limits>

#include "core/types/float_convert.h"

namespace tenon::hlo::expand {

Expr polynomial(Expr x, std::span<const double> coefficients) {
  Expr sum = x.like(coefficients[0]);
  for (const double c : coefficients.subspan(1)) sum = sum * x + c;
  return sum;
}

Expr chebyshev(Expr x, std::span<const double> coefficients) {
  Expr b0 = x.like(coefficients[0]);
  Expr b1 = x.like(0);
  Expr b2 = b1;
  for (const double c : coefficients.subspan(1)) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + c;
  }
  return (b0 - b2) * 0.5;
}

Square split_square(Expr x) {
  // With so many binary places the square of the head fits the mantissa.
  const double scale = is_f64(x) ? 0x1p20 : 0x1p7;
  const Expr head = floor(x * scale + 0.5) / scale;
  return {head * head, (x - head) * (x + head)};
}

ElementType element_type(Expr x) {
  return x.value() ? x.value().type().element_type() : ElementType::kF32;
}

double max_finite(Expr x) { return float_max(element_type(x)); }

double min_normal(Expr x) {
  return is_f64(x) ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

Values expand_real_or_complex(Builder& b, const Instruction& op, const Formula& real_formula,
                              const Formula& complex_formula) {
  const ElementType type = op.operand_type(0).element_type();
  const bool is_narrow = is_float(type) && bit_width(type) < 32;
  std::vector<Expr> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Value x = op.operand(i);
    operands.emplace_back(b, is_narrow ? b.convert(x, ElementType::kF32) : x);
  }
  const Expr result = is_complex(type) ? complex_formula(operands) : real_formula(operands);
  const Value value = is_narrow ? b.convert(result.value(), type) : result.value();
  if (!b.ok()) return Error(b.status());
  return std::vector<Value>{value};
}

Values expand_real(Builder& b, const Instruction& op, const Formula& formula) {
  if (is_complex(op.operand_type(0).element_type())) {
    return unimplemented("{} has no expansion on {}", op.name(), op.operand_type(0).to_string());
  }
  return expand_real_or_complex(b, op, formula, formula);
}

}  // namespace tenon::hlo::expand
