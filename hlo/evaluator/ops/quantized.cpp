// Quantized types: quantize, dequantize, and every other op without regions as dequantize, compute,
// quantize.
#include "hlo/decomposition/needs_decomposition.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/scalars/real_math.h"

namespace tenon::hlo {
namespace {

// The scale and zero point of each element, by its index along the quantization dimension.
class Parameters {
 public:
  Parameters(const QuantizedType& q, const Dims& dims) : q_(q) {
    if (!q.is_per_axis()) return;
    for (size_t d = static_cast<size_t>(q.axis) + 1; d < dims.size(); ++d) inner_ *= dims[d];
    size_ = dims[static_cast<size_t>(q.axis)];
  }
  double scale(int64_t i) const { return q_.scales[place(i)]; }
  int64_t zero_point(int64_t i) const { return q_.zero_points[place(i)]; }

 private:
  size_t place(int64_t i) const {
    return q_.is_per_axis() ? static_cast<size_t>(i / inner_ % size_) : 0;
  }
  const QuantizedType& q_;
  int64_t inner_ = 1;
  int64_t size_ = 1;
};

Scalar real_scalar(ScalarStorage storage, double value) {
  return storage == ScalarStorage::kWide ? Scalar(static_cast<Float128>(value)) : Scalar(value);
}
double real_value(ScalarStorage storage, const Scalar& x) {
  return storage == ScalarStorage::kWide ? static_cast<double>(x.w) : x.d;
}

// (q - zero point), converted to the expressed type, times scale.
Tensor dequantize(Evaluator& e, const Tensor& x, const QuantizedType& q) {
  Tensor result = e.tensor(q.expressed, x.dims());
  const Parameters parameters(q, x.dims());
  for (int64_t i = 0; i < x.count(); ++i) {
    const double offset = round_to(q.expressed, static_cast<double>(x.integer(i)) -
                                                    static_cast<double>(parameters.zero_point(i)));
    const double scale = round_to(q.expressed, parameters.scale(i));
    result.set(i, real_scalar(result.storage(), round_to(q.expressed, offset * scale)));
  }
  return result;
}

// x / scale + zero point in the expressed type, clamped, rounded to nearest even.
Tensor quantize(Evaluator& e, const Tensor& x, const QuantizedType& q) {
  Tensor result = e.tensor(q.storage, x.dims());
  const Parameters parameters(q, x.dims());
  for (int64_t i = 0; i < x.count(); ++i) {
    const double value = real_value(x.storage(), x.get(i));
    const double scale = round_to(q.expressed, parameters.scale(i));
    const double scaled = round_to(q.expressed, value / scale);
    const double zero_point = round_to(q.expressed, static_cast<double>(parameters.zero_point(i)));
    const double moved = round_to(q.expressed, scaled + zero_point);
    const double low = static_cast<double>(q.storage_min);
    const double high = static_cast<double>(q.storage_max);
    const double clamped = std::isnan(moved) ? 0 : std::min(std::max(moved, low), high);
    result.set(i, Scalar(static_cast<int64_t>(std::nearbyint(clamped))));
  }
  return result;
}

}  // namespace

Evaluator::Values evaluate_quantized(Evaluator& e, const Instruction& op, Operands operands,
                                     const EvalFrame& frame) {
  const Type& result_type = op.result_type();
  if (op.code() == OpCode::kUniformDequantize) {
    return one(dequantize(e, *operands[0], *op.operand_type(0).quantized()));
  }
  if (op.code() == OpCode::kUniformQuantize) {
    const Type& from = op.operand_type(0);
    const Tensor real =
        from.is_quantized() ? dequantize(e, *operands[0], *from.quantized()) : *operands[0];
    return one(quantize(e, real, *result_type.quantized()));
  }
  // An empty list means: evaluate on the integers.
  if (decomposition::works_on_storage(op)) return std::vector<EvalValue>{};

  std::vector<EvalValue> reals;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Type& type = op.operand_type(i);
    reals.push_back(type.is_quantized()
                        ? EvalValue::of(dequantize(e, *operands[i], *type.quantized()))
                        : operands[i]);
  }
  Computation parameters;
  Cloner cloner;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    cloner.map(op.operand(i),
               parameters.add_parameter(decomposition::expressed_type(op.operand_type(i))));
  }
  const std::unique_ptr<Instruction> copy = decomposition::expressed_copy(op, cloner);
  // If an operand occurs twice, there must still be two parameters.
  for (size_t i = 0; i < op.operand_count(); ++i) copy->set_operand(i, parameters.parameter(i));
  auto computed = e.evaluate(*copy, reals, frame);
  e.forget(*copy);
  TENON_ASSIGN(std::vector<EvalValue> results, std::move(computed));
  for (size_t i = 0; i < results.size(); ++i) {
    if (op.result_type(i).is_quantized()) {
      results[i] = EvalValue::of(quantize(e, *results[i], *op.result_type(i).quantized()));
    }
  }
  return results;
}

}  // namespace tenon::hlo
