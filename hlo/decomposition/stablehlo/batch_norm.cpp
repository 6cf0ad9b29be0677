// Normalisation over all dimensions except the feature dimension, by the formulas of the
// specification.
#include "hlo/decomposition/decomposition_util.h"
#include "hlo/decomposition/math_builder.h"

namespace tenon::hlo::decomposition {
namespace {

// The quantities that the three ops share, in the type of the computation.
class BatchNorm {
 public:
  BatchNorm(Builder& b, const Instruction& op)
      : b_(b),
        op_(op),
        type_(computing_type(op.operand_type(0).element_type())),
        dims_(op.operand_type(0).dims()),
        feature_(op.integer(AttrKey::feature_index)) {
    for (int64_t d = 0; d < op.operand_type(0).rank(); ++d) {
      if (d != feature_) others_.push_back(d);
    }
    for (const int64_t d : others_) count_ *= static_cast<double>(dims_[at(d)]);
  }

  Expr operand(size_t i) const { return convert(Expr(b_, op_.operand(i)), type_); }
  /// One number per feature, broadcast over the other dimensions.
  Expr spread(const Expr& x) const {
    return {b_, b_.broadcast_in_dim(x.value(), dims_, {feature_})};
  }
  Expr sum(const Expr& x) const {
    return {b_, b_.reduce(OpCode::kAdd, x.value(), b_.scalar(type_, 0), others_)};
  }
  Expr mean(const Expr& x) const { return sum(x) / count_; }
  /// The number of elements per feature.
  double count() const { return count_; }
  double epsilon() const {
    const auto* epsilon = op_.attr<FloatAttr>(AttrKey::epsilon);
    return epsilon ? epsilon->value() : 0;
  }
  Expr normalized(const Expr& centered, const Expr& variance) const {
    return centered / spread(sqrt(variance + epsilon()));
  }
  /// The values converted to the types of the op's results.
  Values results(const std::vector<Expr>& values) const {
    std::vector<Value> converted;
    for (size_t i = 0; i < values.size() && b_.ok(); ++i) {
      converted.push_back(b_.convert(values[i].value(), op_.result_type(i).element_type()));
    }
    return finished(b_, std::move(converted));
  }

 private:
  Builder& b_;
  const Instruction& op_;
  ElementType type_;
  Dims dims_;
  int64_t feature_;
  I64s others_;
  double count_ = 1;
};

}  // namespace

Values batch_norm_inference(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const BatchNorm norm(b, op);
  const Expr scale = norm.operand(1), offset = norm.operand(2);
  const Expr mean = norm.operand(3), variance = norm.operand(4);
  const Expr centered = norm.operand(0) - norm.spread(mean);
  return norm.results(
      {norm.spread(scale) * norm.normalized(centered, variance) + norm.spread(offset)});
}

Values batch_norm_training(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const BatchNorm norm(b, op);
  const Expr x = norm.operand(0), scale = norm.operand(1), offset = norm.operand(2);
  const Expr mean = norm.mean(x);
  const Expr centered = x - norm.spread(mean);
  const Expr variance = norm.mean(centered * centered);
  const Expr output =
      norm.spread(scale) * norm.normalized(centered, variance) + norm.spread(offset);
  return norm.results({output, mean, variance});
}

Values batch_norm_grad(Builder& b, const Instruction& op) {
  TENON_TRY(check_static(op));
  const BatchNorm norm(b, op);
  const Expr x = norm.operand(0), scale = norm.operand(1), mean = norm.operand(2);
  const Expr variance = norm.operand(3), grad = norm.operand(4);
  const Expr centered = x - norm.spread(mean);
  const Expr spread_variance = norm.spread(variance + norm.epsilon());
  const Expr grad_offset = norm.sum(grad);
  const Expr grad_scale = norm.sum(grad * norm.normalized(centered, variance));
  // Subtracts the parts of the gradient that flow through the mean and the variance.
  const Expr along_x = norm.spread(norm.sum(grad * centered)) * centered / spread_variance;
  const Expr rest = grad * norm.count() - norm.spread(grad_offset) - along_x;
  const Expr factor = norm.spread(scale) / sqrt(spread_variance) / norm.count();
  return norm.results({factor * rest, grad_scale, grad_offset});
}

}  // namespace tenon::hlo::decomposition
