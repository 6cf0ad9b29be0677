// batch_norm_* compared with formulas written as loops.
#include <cmath>

#include "hlo/decomposition/decomposition_test_util.h"

namespace tenon::hlo {
namespace {

// --- Batch norms of 2x3x2, feature_index 1

constexpr double kEpsilon = 0.25;
const char* const kNorm = "epsilon = 0.25 : f32, feature_index = 1 : i64";
constexpr size_t kFeatures = 3;
size_t feature_of(size_t i) { return i / 2 % kFeatures; }

TEST(BatchNorm, Inference) {
  const Reals x = some_reals(12, 1);
  const Reals scale = {2, -1, 0.5}, offset = {0.5, 3, -2}, mean = {0.1, 0.2, -0.3};
  const Reals variance = {1, 0.5, 0};
  Reals expected;
  for (size_t i = 0; i < 12; ++i) {
    const size_t f = feature_of(i);
    expected.push_back(scale[f] * (x[i] - mean[f]) / std::sqrt(variance[f] + kEpsilon) + offset[f]);
  }
  const OpCall op{"stablehlo.batch_norm_inference", kNorm, {"2x3x2xf64"}, {}};
  const auto results = op({reals({2, 3, 2}, x), reals({3}, scale), reals({3}, offset),
                           reals({3}, mean), reals({3}, variance)});
  expect_near(reals_of(results[0]), expected);
}

TEST(BatchNorm, Training) {
  const Reals x = some_reals(12, 2);
  const Reals scale = {2, -1, 0.5}, offset = {0.5, 3, -2};
  Reals mean(3), variance(3), expected;
  for (size_t i = 0; i < 12; ++i) mean[feature_of(i)] += x[i] / 4;
  for (size_t i = 0; i < 12; ++i)
    variance[feature_of(i)] += std::pow(x[i] - mean[feature_of(i)], 2) / 4;
  for (size_t i = 0; i < 12; ++i) {
    const size_t f = feature_of(i);
    expected.push_back(scale[f] * (x[i] - mean[f]) / std::sqrt(variance[f] + kEpsilon) + offset[f]);
  }
  const OpCall op{"stablehlo.batch_norm_training", kNorm, {"2x3x2xf64", "3xf64", "3xf64"}, {}};
  const auto results = op({reals({2, 3, 2}, x), reals({3}, scale), reals({3}, offset)});
  expect_near(reals_of(results[0]), expected);
  expect_near(reals_of(results[1]), mean);
  expect_near(reals_of(results[2]), variance);
}

// The derivative of sum(grad * output) with respect to each x, as a difference quotient of the
// training formula.
TEST(BatchNorm, Grad) {
  const Reals x = some_reals(12, 3), grad = some_reals(12, 4), scale = {2, -1, 0.5};
  const auto statistics = [](const Reals& of, Reals& mean, Reals& variance) {
    mean = variance = Reals(3);
    for (size_t i = 0; i < 12; ++i) mean[feature_of(i)] += of[i] / 4;
    for (size_t i = 0; i < 12; ++i) {
      variance[feature_of(i)] += std::pow(of[i] - mean[feature_of(i)], 2) / 4;
    }
  };
  const auto total = [&](const Reals& at) {
    Reals mean, variance;
    statistics(at, mean, variance);
    double sum = 0;
    for (size_t i = 0; i < 12; ++i) {
      const size_t f = feature_of(i);
      sum += grad[i] * scale[f] * (at[i] - mean[f]) / std::sqrt(variance[f] + kEpsilon);
    }
    return sum;
  };
  Reals mean, variance;
  statistics(x, mean, variance);
  Reals grad_x, grad_scale(3), grad_offset(3);
  for (size_t i = 0; i < 12; ++i) {
    Reals up = x, down = x;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    grad_x.push_back((total(up) - total(down)) / 2e-5);
    const size_t f = feature_of(i);
    grad_scale[f] += grad[i] * (x[i] - mean[f]) / std::sqrt(variance[f] + kEpsilon);
    grad_offset[f] += grad[i];
  }
  const OpCall op{"stablehlo.batch_norm_grad", kNorm, {"2x3x2xf64", "3xf64", "3xf64"}, {}};
  const auto results = op({reals({2, 3, 2}, x), reals({3}, scale), reals({3}, mean),
                           reals({3}, variance), reals({2, 3, 2}, grad)});
  expect_near(reals_of(results[0]), grad_x, 1e-8);
  expect_near(reals_of(results[1]), grad_scale);
  expect_near(reals_of(results[2]), grad_offset);
}

}  // namespace
}  // namespace tenon::hlo
