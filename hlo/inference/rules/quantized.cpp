// Quantization parameters that several rules compare.
#include "hlo/inference/infer_util.h"

namespace tenon::hlo::infer {

Status check_quantized_broadcast(const Instruction& op, const Type& operand, const Type& result,
                                 const I64s& broadcast_dimensions) {
  if (!is_per_axis(operand) || !is_per_axis(result)) return {};
  const QuantizedType& from = *operand.quantized();
  const QuantizedType& to = *result.quantized();
  const int64_t expected = broadcast_dimensions[at(from.axis)];
  if (to.axis != expected) {
    return rule_error(op, "C6", "result is quantized along dimension {}, expected {}", to.axis,
                      expected);
  }
  if (operand.dims()[at(from.axis)] != 1) return {};
  for (size_t i = 0; i < to.scales.size(); ++i) {
    if (to.scales[i] != from.scales[0] || to.zero_points[i] != from.zero_points[0]) {
      return rule_error(op, "C6",
                        "scale {} of the result is {}:{}, expected {}:{} as in the operand", i,
                        to.scales[i], to.zero_points[i], from.scales[0], from.zero_points[0]);
    }
  }
  return {};
}

}  // namespace tenon::hlo::infer
