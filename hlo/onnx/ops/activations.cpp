// Activations.
#include <cmath>

#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Lt = OnnxLowering;

Values lower_relu(Lt& n) { return {n.max(n.in(0), 0)}; }

Values lower_leaky_relu(Lt& n) {
  const Value x = n.in(0);
  return {n.select(n.compare(Direction::kLt, x, 0), n.mul(x, n.real("alpha", 0.01)), x)};
}

Values lower_prelu(Lt& n) {
  const Value x = n.in(0);
  return {n.select(n.compare(Direction::kLt, x, 0), n.mul(x, n.in(1)), x)};
}

// scale (x if x > 0, else alpha (e^(x / inside) - 1)).
Value exponential_unit(Lt& n, double alpha, double scale, double inside) {
  const Value x = n.in(0);
  const Value below = n.mul(n.unary(OpCode::kExponentialMinusOne, n.div(x, inside)), alpha);
  const Value unit = n.select(n.compare(Direction::kGt, x, 0), x, below);
  return scale == 1 ? unit : n.mul(unit, scale);
}

Values lower_elu(Lt& n) { return {exponential_unit(n, n.real("alpha", 1), 1, 1)}; }

Values lower_selu(Lt& n) {
  return {exponential_unit(n, n.real("alpha", 1.67326319217681884765625),
                           n.real("gamma", 1.05070102214813232421875), 1)};
}

Values lower_celu(Lt& n) {
  const double alpha = n.real("alpha", 1);
  return {exponential_unit(n, alpha, 1, alpha)};
}

Value hard_sigmoid(Lt& n, Value x, double alpha, double beta) {
  return n.max(n.min(n.add(n.mul(x, alpha), beta), 1), 0);
}

Values lower_hard_sigmoid(Lt& n) {
  return {hard_sigmoid(n, n.in(0), n.real("alpha", 0.2), n.real("beta", 0.5))};
}

Values lower_hard_swish(Lt& n) { return {n.mul(n.in(0), hard_sigmoid(n, n.in(0), 1.0 / 6, 0.5))}; }

Value softplus(Lt& n, Value x) {
  const Value small = n.unary(OpCode::kLogPlusOne, n.exp(n.neg(n.abs(x))));
  return n.add(n.max(x, 0), small);
}

Values lower_softplus(Lt& n) { return {softplus(n, n.in(0))}; }
Values lower_softsign(Lt& n) { return {n.div(n.in(0), n.add(n.abs(n.in(0)), 1))}; }
Values lower_mish(Lt& n) { return {n.mul(n.in(0), n.tanh(softplus(n, n.in(0))))}; }

Values lower_swish(Lt& n) {
  return {n.mul(n.in(0), n.sigmoid(n.mul(n.in(0), n.real("alpha", 1))))};
}

Values lower_swiglu(Lt& n) {
  const Value gate = n.in(0);
  return {n.mul(n.mul(gate, n.sigmoid(n.mul(gate, n.real("alpha", 1)))), n.in(1))};
}

Values lower_gelu(Lt& n) {
  const Value x = n.in(0);
  Value inner;
  if (n.text("approximate", "none") == "tanh") {
    const Value cube = n.mul(n.mul(x, n.mul(x, x)), 0.044715);
    inner = n.tanh(n.mul(n.add(x, cube), std::sqrt(2 / M_PI)));
  } else {
    inner = n.unary(OpCode::kChloErf, n.mul(x, std::sqrt(0.5)));
  }
  return {n.mul(n.mul(x, 0.5), n.add(inner, 1))};
}

Values lower_thresholded_relu(Lt& n) {
  const Value x = n.in(0);
  return {n.select(n.compare(Direction::kGt, x, n.real("alpha", 1)), x, n.like(x, 0))};
}

Values lower_shrink(Lt& n) {
  const Value x = n.in(0);
  const double lambda = n.real("lambd", 0.5), bias = n.real("bias", 0);
  const Value above = n.select(n.compare(Direction::kGt, x, lambda), n.sub(x, bias), n.like(x, 0));
  // Unsigned integers are below no negative number.
  if (is_unsigned_integer(n.type_of(x))) return {above};
  return {n.select(n.compare(Direction::kLt, x, -lambda), n.add(x, bias), above)};
}

Values lower_binarizer(Lt& n) {
  const Value x = n.in(0);
  return {n.convert(n.compare(Direction::kGt, x, n.real("threshold", 0)), n.type_of(x))};
}

// Before version 13 the dimensions from the axis on are one.
Values lower_softmax(Lt& n) {
  const Value x = n.in(0);
  const bool old = n.row().since < 13;
  const int64_t axis = normal_axis(n.integer("axis", old ? 1 : -1), n.rank_of(x));
  Value y = x;
  int64_t over = axis;
  if (old) {
    int64_t rows = 1;
    for (int64_t i = 0; i < axis; ++i) rows *= n.dims_of(x)[static_cast<size_t>(i)];
    y = n.reshape(x, {rows, rows == 0 ? 0 : n.count_of(x) / rows});
    over = 1;
  }
  // 0: Softmax, 1: LogSoftmax, 2: Hardmax.
  if (n.row().parameter == 0) {
    y = n.softmax(y, over);
  } else if (n.row().parameter == 1) {
    const Value shifted = n.sub(y, n.reduce(OpCode::kMaximum, y, {over}, true));
    y = n.sub(shifted, n.log(n.sum(n.exp(shifted), {over}, true)));
  } else {
    const Value first = n.arg_extreme(y, over, true, false);
    const Value positions = n.iota(ElementType::kS64, n.dims_of(y), over);
    y = n.convert(n.compare(Direction::kEq, positions, first), n.type_of(y));
  }
  return {n.reshape(y, n.dims_of(x))};
}

constexpr OnnxRow kActivationRows[] = {
    {"Binarizer", 1, lower_binarizer, 0, "ai.onnx.ml"},
    {"Celu", 12, lower_celu},
    {"Elu", 6, lower_elu},
    {"Gelu", 20, lower_gelu},
    {"HardSigmoid", 6, lower_hard_sigmoid},
    {"HardSwish", 14, lower_hard_swish},
    {"Hardmax", 1, lower_softmax, 2},
    {"Hardmax", 13, lower_softmax, 2},
    {"LeakyRelu", 6, lower_leaky_relu},
    {"LogSoftmax", 1, lower_softmax, 1},
    {"LogSoftmax", 13, lower_softmax, 1},
    {"Mish", 18, lower_mish},
    {"PRelu", 7, lower_prelu},
    {"Relu", 6, lower_relu},
    {"Selu", 6, lower_selu},
    {"Shrink", 9, lower_shrink},
    {"Softmax", 1, lower_softmax, 0},
    {"Softmax", 13, lower_softmax, 0},
    {"Softplus", 1, lower_softplus},
    {"Softsign", 1, lower_softsign},
    {"SwiGLU", 28, lower_swiglu},
    {"Swish", 24, lower_swish},
    {"ThresholdedRelu", 10, lower_thresholded_relu},
};

}  // namespace

std::span<const OnnxRow> onnx_activation_rows() { return kActivationRows; }

}  // namespace tenon::hlo
