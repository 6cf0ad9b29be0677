// Losses, and optimizers.
#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Lo = OnnxLowering;

Value reduced_loss(Lo& n, Value loss, Value weights) {
  const std::string reduction = n.text("reduction", "mean");
  if (reduction == "none") return loss;
  const I64s axes = all_axes(n.rank_of(loss));
  const Value sum = n.sum(loss, axes, false);
  if (reduction == "sum") return sum;
  return n.div(sum, n.sum(weights, axes, false));
}

// -x[target], weighted, 0 where the target is ignored. Classes are dimension 1.
Value negative_log_likelihood(Lo& n, Value x) {
  const ElementType type = n.type_of(x);
  const Value target = n.convert(n.in(1), ElementType::kS64);
  if (n.rank_of(x) < 2 || n.rank_of(target) + 1 != n.rank_of(x))
    bad_onnx("a target of rank {} for rank {}", n.rank_of(target), n.rank_of(x));
  Value index = target;
  Value weights = n.splat(type, n.dims_of(target), 1);
  std::optional<Value> ignored;
  if (n.has_attribute("ignore_index")) {
    ignored = n.compare(
        Direction::kEq, target,
        n.constant(Literal::scalar_integer(ElementType::kS64, n.integer("ignore_index", 0))));
    index = n.select(*ignored, n.like(target, 0), target);
  }
  if (n.has(2)) weights = n.take(n.in(2), index, 0);
  if (ignored) weights = n.select(*ignored, n.like(weights, 0), weights);
  const Value chosen = n.squeeze(n.take_along(x, n.unsqueeze(index, {1}), 1), {1});
  return reduced_loss(n, n.neg(n.mul(chosen, weights)), weights);
}

Values lower_negative_log_likelihood(Lo& n) { return {negative_log_likelihood(n, n.in(0))}; }

Values lower_softmax_cross_entropy(Lo& n) {
  const Value x = n.in(0);
  if (n.rank_of(x) < 2) bad_onnx("its input has rank {}", n.rank_of(x));
  const Value shifted = n.sub(x, n.reduce(OpCode::kMaximum, x, {1}, true));
  const Value log_softmax = n.sub(shifted, n.log(n.sum(n.exp(shifted), {1}, true)));
  return {negative_log_likelihood(n, log_softmax), log_softmax};
}

// --- Optimizers: R, T, then for each variable its value, gradient and states, group by group

struct Optimized {
  Value variable, gradient;
  Values states;
};

using Optimizer = Values (*)(Lo&, const Optimized&, Value rate, Value step);

Values for_each_variable(Lo& n, size_t states, Optimizer optimize) {
  const size_t groups = states + 2;
  if (n.input_count() < 2 || (n.input_count() - 2) % groups != 0)
    bad_onnx("it has {} inputs", n.input_count());
  const size_t count = (n.input_count() - 2) / groups;
  Values results(count * (states + 1));
  for (size_t i = 0; i < count; ++i) {
    Optimized each{n.in(2 + i), n.in(2 + count + i), {}};
    for (size_t s = 0; s < states; ++s) each.states.push_back(n.in(2 + (2 + s) * count + i));
    const Values updated = optimize(n, each, n.reshape(n.in(0), {}),
                                    n.convert(n.reshape(n.in(1), {}), n.type_of(n.in(0))));
    for (size_t u = 0; u < updated.size(); ++u) results[u * count + i] = updated[u];
  }
  return results;
}

Value regularized(Lo& n, const Optimized& o) {
  return n.add(n.mul(o.variable, n.real("norm_coefficient", 0)), o.gradient);
}

Values adagrad(Lo& n, const Optimized& o, Value rate, Value step) {
  const Value decayed = n.div(rate, n.add(n.mul(step, n.real("decay_factor", 0)), 1));
  const Value gradient = regularized(n, o);
  const Value sum = n.add(o.states[0], n.mul(gradient, gradient));
  const Value scaled = n.div(gradient, n.add(n.sqrt(sum), n.real("epsilon", 0)));
  return {n.sub(o.variable, n.mul(decayed, scaled)), sum};
}

Values adam(Lo& n, const Optimized& o, Value rate, Value step) {
  const double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999);
  const Value gradient = regularized(n, o);
  const Value mean = n.add(n.mul(o.states[0], alpha), n.mul(gradient, 1 - alpha));
  const Value square = n.add(n.mul(o.states[1], beta), n.mul(n.mul(gradient, gradient), 1 - beta));
  const auto left = [&](double base) {
    return n.sub(n.like(step, 1), n.binary(OpCode::kPower, n.like(step, base), step));
  };
  const Value corrected = n.select(n.compare(Direction::kGt, step, 0),
                                   n.div(n.mul(rate, n.sqrt(left(beta))), left(alpha)), rate);
  const Value updated =
      n.sub(o.variable, n.div(n.mul(corrected, mean), n.add(n.sqrt(square), n.real("epsilon", 0))));
  return {n.mul(updated, 1 - n.real("norm_coefficient_post", 0)), mean, square};
}

Values momentum(Lo& n, const Optimized& o, Value rate, Value step) {
  const double alpha = n.real("alpha", 0), beta = n.real("beta", 0);
  const Value gradient = regularized(n, o);
  const Value part =
      n.select(n.compare(Direction::kGt, step, 0), n.like(rate, beta), n.like(rate, 1));
  const Value velocity = n.add(n.mul(o.states[0], alpha), n.mul(gradient, part));
  const Value moved =
      n.text("mode", "standard") == "nesterov" ? n.add(gradient, n.mul(velocity, alpha)) : velocity;
  return {n.sub(o.variable, n.mul(rate, moved)), velocity};
}

Values lower_adagrad(Lo& n) { return for_each_variable(n, 1, adagrad); }
Values lower_adam(Lo& n) { return for_each_variable(n, 2, adam); }
Values lower_momentum(Lo& n) { return for_each_variable(n, 1, momentum); }

constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr OnnxRow kLossRows[] = {
    {"Adagrad", 1, lower_adagrad, 0, kTraining},
    {"Adam", 1, lower_adam, 0, kTraining},
    {"Momentum", 1, lower_momentum, 0, kTraining},
    {"NegativeLogLikelihoodLoss", 12, lower_negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, lower_softmax_cross_entropy},
};

}  // namespace

std::span<const OnnxRow> onnx_loss_rows() { return kLossRows; }

}  // namespace tenon::hlo
