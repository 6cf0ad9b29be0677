// hlo/inference/rules/: shape rules, a file for each group of ops.
//
// Rules of elementwise ops.
#include <algorithm>

#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {
namespace {

Status check_accuracy(const Instruction& op) {
  const auto* accuracy = op.attr<ResultAccuracy>(AttrKey::result_accuracy);
  if (accuracy == nullptr) return {};
  // Also rejects NaN, which compares false.
  if (!(accuracy->atol >= 0) || !(accuracy->rtol >= 0) || accuracy->ulps < 0) {
    return rule_error(op, "", "result_accuracy has a negative tolerance");
  }
  const bool has_tolerance = accuracy->atol != 0 || accuracy->rtol != 0 || accuracy->ulps != 0;
  if (accuracy->mode != ResultAccuracyMode::kTolerance && has_tolerance) {
    return rule_error(op, "",
                      "result_accuracy has tolerances, expected none but with mode TOLERANCE");
  }
  return {};
}

Status check_not_unsigned(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  if (operand.is_quantized() || !is_unsigned_integer(operand.element_type())) return {};
  return rule_error(op, "I1", "operand is {}, expected signed integers, floats or complex numbers",
                    operand.to_string());
}

// Addition is the only binary op whose operands may mix per-tensor and per-axis quantization.
Types quantized_add(const Instruction& op, const Type& lhs, const Type& rhs) {
  const Type& like = is_per_axis(lhs) ? lhs : rhs;
  const Type result = op.result_count() == 1 ? op.result_type(0) : like;
  if (!lhs.is_quantized() || !rhs.is_quantized() || !result.is_quantized()) {
    return rule_error(op, "C2", "{}, {} and result {} are not all quantized", lhs.to_string(),
                      rhs.to_string(), result.to_string());
  }
  const QuantizedType& x = *lhs.quantized();
  const QuantizedType& y = *rhs.quantized();
  const QuantizedType& z = *result.quantized();
  if (x.storage != y.storage || x.storage != z.storage) {
    return rule_error(op, "C3", "storage types differ: {}, {} and {}", name_of(x.storage),
                      name_of(y.storage), name_of(z.storage));
  }
  if (x.expressed != y.expressed || x.expressed != z.expressed) {
    return rule_error(op, "C4", "expressed types differ: {}, {} and {}", name_of(x.expressed),
                      name_of(y.expressed), name_of(z.expressed));
  }
  if ((x.is_per_axis() || y.is_per_axis()) != z.is_per_axis()) {
    return rule_error(op, "C5", "result {} is {}quantized per axis, but {} operand is",
                      result.to_string(), z.is_per_axis() ? "" : "not ",
                      z.is_per_axis() ? "no" : "an");
  }
  if (x.is_per_axis() && x.axis != z.axis) {
    return rule_error(op, "C6", "lhs is quantized along dimension {}, the result along {}", x.axis,
                      z.axis);
  }
  if (y.is_per_axis() && y.axis != z.axis) {
    return rule_error(op, "C7", "rhs is quantized along dimension {}, the result along {}", y.axis,
                      z.axis);
  }
  if (!same_shape(result, lhs)) {
    return rule_error(op, "C1", "result is {}, expected the shape of {}", result.to_string(),
                      lhs.to_string());
  }
  return one(with_dims(result, dims_of(most_specific(lhs, rhs))));
}

}  // namespace

Types unary(const Instruction& op) {
  if (op.code() == OpCode::kSign) TENON_TRY(check_not_unsigned(op));
  TENON_TRY(check_accuracy(op));
  return one(settle(op, 0, op.operand_type(0)));
}

Types abs(const Instruction& op) {
  TENON_TRY(check_not_unsigned(op));
  const Type& operand = op.operand_type(0);
  if (operand.is_quantized()) return one(settle(op, 0, operand));
  return one(with_element(operand, complex_part(operand.element_type())));
}

Types binary(const Instruction& op) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  const bool has_quantized = lhs.is_quantized() || rhs.is_quantized();
  const bool is_quantized_add = op.code() == OpCode::kAdd && has_quantized;
  if ((!is_quantized_add && !same_element(lhs, rhs)) || !same_shape(lhs, rhs)) {
    return rule_error(op, "C1", "operand types differ: {} and {}", lhs.to_string(),
                      rhs.to_string());
  }
  if (is_quantized_add) return quantized_add(op, lhs, rhs);
  return one(settle(op, 0, most_specific(lhs, rhs)));
}

Types clamp(const Instruction& op) {
  const Type& min = op.operand_type(0);
  const Type& operand = op.operand_type(1);
  const Type& max = op.operand_type(2);
  if (min.rank() != 0 && !same_shape(min, operand)) {
    return rule_error(op, "C1", "min is {}, expected rank 0 or the shape of {}", min.to_string(),
                      operand.to_string());
  }
  if (max.rank() != 0 && !same_shape(max, operand)) {
    return rule_error(op, "C2", "max is {}, expected rank 0 or the shape of {}", max.to_string(),
                      operand.to_string());
  }
  if (!same_element(min, operand) || !same_element(operand, max)) {
    return rule_error(op, "C3", "element types differ: {}, {} and {}", element_to_string(min),
                      element_to_string(operand), element_to_string(max));
  }
  return one(settle(op, 0, operand));
}

Types select(const Instruction& op) {
  const Type& pred = op.operand_type(0);
  const Type& on_true = op.operand_type(1);
  const Type& on_false = op.operand_type(2);
  if (type_class(pred) != kTypesPred) {
    return rule_error(op, "I1", "pred is {}, expected a tensor of pred", pred.to_string());
  }
  if (!same_element(on_true, on_false) || !same_shape(on_true, on_false)) {
    return rule_error(op, "C2", "on_true is {}, on_false is {}, expected the same type",
                      on_true.to_string(), on_false.to_string());
  }
  if (pred.rank() != 0 && !same_shape(pred, on_true)) {
    return rule_error(op, "C1", "pred is {}, expected rank 0 or the shape of {}", pred.to_string(),
                      on_true.to_string());
  }
  return one(settle(op, 0, most_specific(on_true, on_false)));
}

Status check_compare_type(const Instruction& op, std::string_view label) {
  const Type& lhs = op.operand_type(0);
  // SIGNED and UNSIGNED may stand on any type, as the official verifier has it: artifacts do so,
  // and the element type decides the comparison.
  const auto type = op.enumeration<ComparisonType>(AttrKey::compare_type);
  const uint8_t element = type_class(lhs);
  bool fits_type = element == kTypesQuantized || element == kTypesFloat;
  if (type == ComparisonType::kFloat) {
    fits_type = fits_type || element == kTypesComplex;
  } else if (type != ComparisonType::kTotalOrder) {
    fits_type = true;
  }
  if (fits_type) return {};
  const EnumAttr word{EnumKind::kComparisonType, static_cast<uint8_t>(type)};
  return rule_error(op, label, "compare_type is {}, which does not compare {}", enum_word(word),
                    element_to_string(lhs));
}

Types compare(const Instruction& op) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  if (!same_element(lhs, rhs)) {
    return rule_error(op, "C1", "element types differ: {} and {}", element_to_string(lhs),
                      element_to_string(rhs));
  }
  if (!same_shape(lhs, rhs)) {
    return rule_error(op, "C2", "operand shapes differ: {} and {}", lhs.to_string(),
                      rhs.to_string());
  }
  TENON_TRY(check_compare_type(op, "C3"));
  return one(with_element(most_specific(lhs, rhs), ElementType::kPred));
}

Types complex(const Instruction& op) {
  const Type& lhs = op.operand_type(0);
  const Type& rhs = op.operand_type(1);
  const std::optional<ElementType> result = complex_of(lhs.element_type());
  if (!result) {
    return rule_error(op, "I1", "lhs is {}, expected f32 or f64", lhs.to_string());
  }
  if (!same_element(lhs, rhs) || !same_shape(lhs, rhs)) {
    return rule_error(op, "C1", "operand types differ: {} and {}", lhs.to_string(),
                      rhs.to_string());
  }
  return one(with_element(most_specific(lhs, rhs), *result));
}

Types real_imag(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  return one(with_element(operand, complex_part(operand.element_type())));
}

Types is_finite(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  const uint8_t element = type_class(operand);
  if (element != kTypesFloat && element != kTypesQuantized) {
    return rule_error(op, "I1", "operand is {}, expected floats", operand.to_string());
  }
  return one(with_element(operand, ElementType::kPred));
}

Types convert(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  const Type& operand = op.operand_type(0);
  if (!same_shape(operand, stated)) {
    return rule_error(op, "C1", "result is {}, expected the shape of {}", stated.to_string(),
                      operand.to_string());
  }
  return one(with_dims(stated, dims_of(operand)));
}

Types reduce_precision(const Instruction& op) {
  const int64_t exponent_bits = op.integer(AttrKey::exponent_bits);
  const int64_t mantissa_bits = op.integer(AttrKey::mantissa_bits);
  if (exponent_bits < 1) {
    return rule_error(op, "C2", "exponent_bits is {}, expected at least 1", exponent_bits);
  }
  if (mantissa_bits < 0) {
    return rule_error(op, "C3", "mantissa_bits is {}, expected at least 0", mantissa_bits);
  }
  return one(settle(op, 0, op.operand_type(0)));
}

Types uniform_quantize(const Instruction& op) {
  TENON_ASSIGN(const Type stated, stated_tensor(op));
  const Type& operand = op.operand_type(0);
  if (!stated.is_quantized()) {
    return rule_error(op, "", "result is {}, expected a quantized tensor", stated.to_string());
  }
  if (!same_shape(operand, stated)) {
    return rule_error(op, "C1", "result is {}, expected the shape of {}", stated.to_string(),
                      operand.to_string());
  }
  const ElementType expressed =
      operand.is_quantized() ? operand.quantized()->expressed : operand.element_type();
  if (stated.quantized()->expressed != expressed) {
    return rule_error(op, "C2", "expressed type of the result is {}, expected {}",
                      name_of(stated.quantized()->expressed), name_of(expressed));
  }
  return one(with_dims(stated, dims_of(operand)));
}

Types uniform_dequantize(const Instruction& op) {
  const Type& operand = op.operand_type(0);
  if (!operand.is_quantized()) {
    return rule_error(op, "I1", "operand is {}, expected a quantized tensor", operand.to_string());
  }
  return one(with_element(operand, operand.quantized()->expressed));
}

Types map(const Instruction& op) {
  if (op.operand_count() == 0) return rule_error(op, "C2", "there are no inputs");
  Type shape = op.operand_type(0);
  std::vector<Type> expected;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!same_shape(shape, op.operand_type(i))) {
      return rule_error(op, "C1", "input shapes differ: {} and {}", shape.to_string(),
                        op.operand_type(i).to_string());
    }
    shape = most_specific(shape, op.operand_type(i));
    expected.push_back(op.operand_type(i).with_dims({}));
  }
  const I64s& dimensions = op.i64s(AttrKey::dimensions);
  bool counts_up = length(dimensions) == shape.rank();
  for (size_t i = 0; i < dimensions.size(); ++i) {
    counts_up = counts_up && dimensions[i] == static_cast<int64_t>(i);
  }
  if (!counts_up) {
    return rule_error(op, "C3", "dimensions is {}, expected 0 to {} in order",
                      list_to_string(dimensions), shape.rank() - 1);
  }
  TENON_TRY(check_parameters(op, 0, "C4", expected));
  TENON_ASSIGN(const std::vector<Type> results, region_results(op, 0, "C4"));
  if (results.size() != 1 || !results[0].is_tensor() || results[0].rank() != 0) {
    return rule_error(op, "C4", "computation returns ({}), expected one 0-dimensional tensor",
                      types_to_string(results));
  }
  return one(settle(op, 0, with_dims(results[0], dims_of(shape))));
}

}  // namespace tenon::hlo::infer
