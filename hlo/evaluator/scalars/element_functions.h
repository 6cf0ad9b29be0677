// Elementwise ops on scalars: one function an op and storage.
#pragma once

#include "hlo/evaluator/scalars/scalar.h"
#include "hlo/ir/instruction.h"

namespace tenon::hlo {

/// The context of an elementwise function: types and attributes that it needs besides its operands.
struct ElementContext {
  ElementType operand_type{};
  ElementType result_type{};
  bool wide = false;
  ComparisonDirection direction{};
  ComparisonType comparison{};
  int64_t exponent_bits = 0;
  int64_t mantissa_bits = 0;
};

using ElementFunction = Scalar (*)(const ElementContext& context, const Scalar* operands);

/// The function of an elementwise op on operands of `context.operand_type`, or null when the op is
/// not elementwise or not defined on the type.
ElementFunction element_function(OpCode code, const ElementContext& context);

/// The context of `op` by its operand and result types and attributes.
ElementContext element_context(const Instruction& op, bool wide);

/// Whether `a` comes before `b` in the total order -NaN < -inf < … < -0 < +0 < … < +inf < +NaN.
bool total_order_less(ElementType type, const Scalar& a, const Scalar& b);

}  // namespace tenon::hlo
