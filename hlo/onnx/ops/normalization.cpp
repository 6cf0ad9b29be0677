// Normalisations, dropout.
#include "hlo/onnx/lowering.h"

namespace tenon::hlo {
namespace {

using Ln = OnnxLowering;

// A vector of a number for each channel, beside [batch, channel, …].
Value per_channel(Ln& n, Value vector, Value x) {
  return n.broadcast_in_dim(vector, n.dims_of(x), {n.rank_of(x) > 1 ? 1 : 0});
}

Values lower_batch_normalization(Ln& n) {
  const Value x = n.in(0);
  const double epsilon = n.real("epsilon", 1e-5);
  if (!n.flag("spatial", true)) refuse_onnx("spatial=0 is not supported");
  Value mean = n.in(3), variance = n.in(4);
  Values statistics;
  if (n.flag("training_mode") || (n.row().since < 14 && n.wants(1))) {
    const double momentum = n.real("momentum", 0.9);
    I64s axes = all_axes(n.rank_of(x));
    n.check_rank(x, 1);
    axes.erase(axes.begin() + (n.rank_of(x) > 1 ? 1 : 0));
    const Value batch_mean = n.mean(x, axes, false);
    const Value shifted = n.sub(x, per_channel(n, batch_mean, x));
    const Value batch_variance = n.mean(n.mul(shifted, shifted), axes, false);
    const auto running = [&](Value old, Value now) {
      return n.add(n.mul(old, momentum), n.convert(n.mul(now, 1 - momentum), n.type_of(old)));
    };
    statistics = {running(mean, batch_mean), running(variance, batch_variance)};
    mean = batch_mean;
    variance = batch_variance;
    if (n.row().since < 14) {
      statistics.push_back(mean);
      statistics.push_back(variance);
    }
  }
  const ElementType type = n.type_of(x);
  const auto channel = [&](Value v) { return per_channel(n, n.convert(v, type), x); };
  const Value scale =
      n.div(n.convert(n.in(1), n.type_of(variance)), n.sqrt(n.add(variance, epsilon)));
  Values results = {n.add(n.mul(n.sub(x, channel(mean)), channel(scale)), channel(n.in(2)))};
  results.insert(results.end(), statistics.begin(), statistics.end());
  return results;
}

struct Standardized {
  Value value, mean, inverse;
};

// (x - mean) / sqrt(variance + epsilon) over some dimensions.
Standardized standardize(Ln& n, Value x, const I64s& axes, double epsilon) {
  const Value mean = n.mean(x, axes, true);
  const Value shifted = n.sub(x, mean);
  const Value variance = n.mean(n.mul(shifted, shifted), axes, true);
  const Value inverse = n.unary(OpCode::kRsqrt, n.add(variance, epsilon));
  return {n.mul(shifted, inverse), mean, inverse};
}

ElementType stash_type(Ln& n) { return n.type_attribute("stash_type", ElementType::kF32); }

Values lower_layer_normalization(Ln& n) {
  const Value x = n.in(0);
  const ElementType type = n.type_of(x);
  const ElementType wide = bit_width(type) > bit_width(stash_type(n)) ? type : stash_type(n);
  const I64s axes = all_axes(n.rank_of(x), normal_axis(n.integer("axis", -1), n.rank_of(x)));
  const Standardized s = standardize(n, n.convert(x, wide), axes, n.real("epsilon", 1e-5));
  Value y = n.mul(n.convert(s.value, type), n.in(1));
  if (n.has(2)) y = n.add(y, n.in(2));
  return {y, s.mean, s.inverse};
}

Values lower_rms_normalization(Ln& n) {
  const Value x = n.in(0);
  // ONNX Runtime's op gives results of its scale's type.
  const ElementType type = n.type_of(n.row().parameter == 1 ? n.in(1) : x);
  const ElementType wide = bit_width(type) > bit_width(stash_type(n)) ? type : stash_type(n);
  const I64s axes = all_axes(n.rank_of(x), normal_axis(n.integer("axis", -1), n.rank_of(x)));
  const Value y = n.convert(x, wide);
  const Value mean = n.mean(n.mul(y, y), axes, true);
  const Value root = n.sqrt(n.add(mean, n.real("epsilon", 1e-5)));
  // The second result is SimplifiedLayerNormalization's.
  return {n.mul(n.convert(n.div(y, root), type), n.convert(n.in(1), type)),
          n.div(n.like(root, 1), root)};
}

Values lower_instance_normalization(Ln& n) {
  const Value x = n.in(0);
  const Standardized s = standardize(n, x, all_axes(n.rank_of(x), 2), n.real("epsilon", 1e-5));
  return {n.add(n.mul(s.value, per_channel(n, n.in(1), x)), per_channel(n, n.in(2), x))};
}

// Before version 21, scale and bias have a number for each group.
Values lower_group_normalization(Ln& n) {
  const Value x = n.in(0);
  const ElementType type = n.type_of(x);
  const int64_t groups = n.integer("num_groups", 1);
  if (n.rank_of(x) < 2 || groups < 1 || n.dims_of(x)[1] % groups != 0)
    bad_onnx("{} groups of [{}]", groups, dims_to_string(n.dims_of(x)));
  Dims split = n.dims_of(x);
  split[1] /= groups;
  split.insert(split.begin() + 1, groups);
  const Value grouped =
      n.reshape(n.convert(x, bit_width(type) < 32 ? ElementType::kF32 : type), split);
  const Standardized s =
      standardize(n, grouped, all_axes(std::ssize(split), 2), n.real("epsilon", 1e-5));
  const Value y = n.convert(s.value, type);
  if (n.row().since < 21) {
    const auto group = [&](Value v) { return n.broadcast_in_dim(v, split, {1}); };
    return {n.reshape(n.add(n.mul(y, group(n.in(1))), group(n.in(2))), n.dims_of(x))};
  }
  return {n.add(n.mul(n.reshape(y, n.dims_of(x)), per_channel(n, n.in(1), x)),
                per_channel(n, n.in(2), x))};
}

Values lower_mean_variance_normalization(Ln& n) {
  const Value x = n.in(0);
  const I64s axes =
      n.has_attribute("axes") ? normal_axes(n.integers("axes"), n.rank_of(x)) : I64s{0, 2, 3};
  for (const int64_t each : axes) normal_axis(each, n.rank_of(x));
  const Value mean = n.mean(x, axes, true);
  const Value shifted = n.sub(x, mean);
  const Value deviation = n.sqrt(n.mean(n.mul(shifted, shifted), axes, true));
  return {n.div(shifted, n.add(deviation, 1e-9))};
}

Values lower_lp_normalization(Ln& n) {
  const Value x = n.in(0);
  const int64_t axis = normal_axis(n.integer("axis", -1), n.rank_of(x));
  const Value norm = n.integer("p", 2) == 1 ? n.sum(n.abs(x), {axis}, true)
                                            : n.sqrt(n.sum(n.mul(x, x), {axis}, true));
  const Value zero = n.compare(Direction::kEq, norm, 0);
  return {n.select(zero, n.like(x, 0), n.div(x, n.select(zero, n.like(x, 1), norm)))};
}

Values lower_lrn(Ln& n) {
  const Value x = n.in(0);
  const int64_t size = n.integer("size", 1);
  if (n.rank_of(x) < 2 || size < 1) bad_onnx("size is {}", size);
  const I64s ones(n.dims_of(x).size(), 1), zeros(ones.size(), 0);
  OnnxEmitter::EmittedWindow window{ones, ones, zeros, zeros, ones};
  window.size[1] = size;
  window.low[1] = (size - 1) / 2;
  window.high[1] = size - 1 - window.low[1];
  const Value sum = n.reduce_window(OpCode::kAdd, n.mul(x, x), window);
  const Value base =
      n.add(n.mul(sum, n.real("alpha", 1e-4) / static_cast<double>(size)), n.real("bias", 1));
  return {n.div(x, n.binary(OpCode::kPower, base, n.like(x, n.real("beta", 0.75))))};
}

// The same in inference; in training with a ratio of 0 as well.
Values lower_dropout(Ln& n) {
  const Value x = n.in(0);
  if (n.has(2)) {
    const bool off = n.known_flag(2) == false;
    if (!off && (!n.has(1) || n.known_number(1) != 0))
      refuse_onnx("dropout in training is random, and not supported");
  }
  const ElementType mask = n.row().since < 10 ? n.type_of(x) : ElementType::kPred;
  return {x, n.splat(mask, n.dims_of(x), 1)};
}

constexpr OnnxRow kNormalizationRows[] = {
    {"BatchNormalization", 7, lower_batch_normalization},
    {"BatchNormalization", 14, lower_batch_normalization},
    {"Dropout", 7, lower_dropout},
    {"Dropout", 10, lower_dropout},
    {"GroupNormalization", 18, lower_group_normalization},
    {"GroupNormalization", 21, lower_group_normalization},
    {"InstanceNormalization", 6, lower_instance_normalization},
    {"LRN", 1, lower_lrn},
    {"LayerNormalization", 17, lower_layer_normalization},
    {"LpNormalization", 1, lower_lp_normalization},
    {"MeanVarianceNormalization", 9, lower_mean_variance_normalization},
    {"RMSNormalization", 23, lower_rms_normalization},
    {"SimplifiedLayerNormalization", 1, lower_rms_normalization, 1},  // ONNX Runtime's.
};

}  // namespace

std::span<const OnnxRow> onnx_normalization_rows() { return kNormalizationRows; }

}  // namespace tenon::hlo
