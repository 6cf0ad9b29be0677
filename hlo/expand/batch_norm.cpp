// batch_norm_*, as the specification's formulas.
#include "hlo/expand/expand_util.h"

namespace tenon::hlo::expand {
namespace {

struct Norm {
  Builder& b;
  Dims dims;      // of the operand
  I64s feature;   // the feature dimension alone
  I64s reduced;   // every other one
  double count = 1;
  ElementType type{};

  Norm(Builder& builder, const Instruction& op) : b(builder), dims(op.operand_type(0).dims()) {
    feature = {op.integer(AttrKey::feature_index)};
    reduced = dims_without(static_cast<int64_t>(dims.size()), feature);
    for (const int64_t d : reduced) count *= static_cast<double>(dims[static_cast<size_t>(d)]);
    type = op.operand_type(0).element_type();
  }
  // A value per feature, repeated along the other dimensions.
  Value spread(Value x) { return b.broadcast_in_dim(x, dims, feature); }
  Value sum(Value x) { return b.reduce(OpCode::kAdd, x, b.scalar(type, 0), reduced); }
  Value mean(Value x) {
    const Value total = sum(x);
    return b.div(total, b.splat_like(total, count));
  }
};

double epsilon_of(const Instruction& op) {
  const auto* epsilon = op.attr<FloatAttr>(AttrKey::epsilon);
  return epsilon ? epsilon->value() : 0;
}

// scale (x - mean) / sqrt(variance + epsilon) + offset
Value normalise(Norm& n, Value x, Value scale, Value offset, Value mean, Value variance,
                double epsilon) {
  Builder& b = n.b;
  const Value centered = b.sub(x, n.spread(mean));
  const Value deviation =
      b.unary(OpCode::kSqrt, b.add(variance, b.splat_like(variance, epsilon)));
  const Value normalised = b.div(centered, n.spread(deviation));
  return b.add(b.mul(n.spread(scale), normalised), n.spread(offset));
}

}  // namespace

Values batch_norm_inference(Builder& b, const Instruction& op) {
  Norm n(b, op);
  return done(b, {normalise(n, op.operand(0), op.operand(1), op.operand(2), op.operand(3),
                            op.operand(4), epsilon_of(op))});
}

Values batch_norm_training(Builder& b, const Instruction& op) {
  Norm n(b, op);
  const Value x = op.operand(0);
  const Value mean = n.mean(x);
  const Value centered = b.sub(x, n.spread(mean));
  const Value variance = n.mean(b.mul(centered, centered));
  const Value output =
      normalise(n, x, op.operand(1), op.operand(2), mean, variance, epsilon_of(op));
  return done(b, {output, mean, variance});
}

Values batch_norm_grad(Builder& b, const Instruction& op) {
  Norm n(b, op);
  const Value x = op.operand(0);
  const Value scale = op.operand(1);
  const Value grad = op.operand(4);
  const Value variance_epsilon =
      b.add(op.operand(3), b.splat_like(op.operand(3), epsilon_of(op)));
  const Value centered = b.sub(x, n.spread(op.operand(2)));
  const Value grad_offset = n.sum(grad);
  const Value grad_centered = n.sum(b.mul(grad, centered));
  const Value inverse = b.unary(OpCode::kRsqrt, variance_epsilon);
  const Value grad_scale = b.mul(grad_centered, inverse);
  // scale / sqrt(v) / N * (N g - sum(g) - (x - mean) sum(g (x - mean)) / v)
  const Value i1 = b.mul(grad, b.splat_like(grad, n.count));
  const Value i2 = b.sub(i1, n.spread(grad_offset));
  const Value i3 = b.div(b.mul(centered, n.spread(grad_centered)), n.spread(variance_epsilon));
  const Value factor = b.div(b.mul(scale, inverse), b.splat_like(scale, n.count));
  const Value grad_operand = b.mul(n.spread(factor), b.sub(i2, i3));
  return done(b, {grad_operand, grad_scale, grad_offset});
}

}  // namespace tenon::hlo::expand
