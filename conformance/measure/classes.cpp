// The programs that are measured.
#include <fmt/format.h>

#include <cmath>

#include "conformance/measure/measure.h"

namespace tenon::conformance {
namespace {

constexpr int64_t kWidth = 64;       // Of rows that are gathered and scattered.
constexpr int64_t kChannels = 32;    // Of the convolution.
constexpr int64_t kTransform = 256;  // Length of an fft.

std::string unary(std::string_view op, int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{\n"
      " %r = stablehlo.{1} %x : tensor<{0}xf32>\n return %r : tensor<{0}xf32>\n}}\n",
      n, op);
}

std::string multiply_add(int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}xf32>, %y: tensor<{0}xf32>) -> tensor<{0}xf32> {{\n"
      " %m = stablehlo.multiply %x, %y : tensor<{0}xf32>\n"
      " %r = stablehlo.add %m, %x : tensor<{0}xf32>\n return %r : tensor<{0}xf32>\n}}\n",
      n);
}

std::string sum(int64_t n, int dimension) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}x{0}xf32>) -> tensor<{0}xf32> {{\n"
      " %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      " %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [{1}] : "
      "(tensor<{0}x{0}xf32>, tensor<f32>) -> tensor<{0}xf32>\n return %r : tensor<{0}xf32>\n}}\n",
      n, dimension);
}

std::string transpose(int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}x{0}xf32>) -> tensor<{0}x{0}xf32> {{\n"
      " %r = stablehlo.transpose %x, dims = [1, 0] : (tensor<{0}x{0}xf32>) -> "
      "tensor<{0}x{0}xf32>\n return %r : tensor<{0}x{0}xf32>\n}}\n",
      n);
}

std::string gather(int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}x{1}xf32>, %i: tensor<{0}x1xi32>) -> tensor<{0}x{1}xf32> {{\n"
      " %r = \"stablehlo.gather\"(%x, %i) {{dimension_numbers = #stablehlo.gather<offset_dims = "
      "[1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes "
      "= array<i64: 1, {1}>}} : (tensor<{0}x{1}xf32>, tensor<{0}x1xi32>) -> tensor<{0}x{1}xf32>\n"
      " return %r : tensor<{0}x{1}xf32>\n}}\n",
      n, kWidth);
}

std::string scatter(int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}x{1}xf32>, %i: tensor<{0}x1xi32>, %u: tensor<{0}x{1}xf32>) -> "
      "tensor<{0}x{1}xf32> {{\n"
      " %r = \"stablehlo.scatter\"(%x, %i, %u) ({{\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "   %s = stablehlo.add %a, %b : tensor<f32>\n   stablehlo.return %s : tensor<f32>\n }}) "
      "{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
      "unique_indices = true}} : (tensor<{0}x{1}xf32>, tensor<{0}x1xi32>, tensor<{0}x{1}xf32>) -> "
      "tensor<{0}x{1}xf32>\n return %r : tensor<{0}x{1}xf32>\n}}\n",
      n, kWidth);
}

std::string sort(int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{\n"
      " %r = \"stablehlo.sort\"(%x) ({{\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "   %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "   stablehlo.return %p : tensor<i1>\n }}) {{dimension = 0 : i64, is_stable = true}} : "
      "(tensor<{0}xf32>) -> tensor<{0}xf32>\n return %r : tensor<{0}xf32>\n}}\n",
      n);
}

std::string dot(int64_t n, std::string_view operands, std::string_view result) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}x{0}x{1}>, %y: tensor<{0}x{0}x{1}>) -> tensor<{0}x{0}x{2}> "
      "{{\n %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : "
      "(tensor<{0}x{0}x{1}>, tensor<{0}x{0}x{1}>) -> tensor<{0}x{0}x{2}>\n"
      " return %r : tensor<{0}x{0}x{2}>\n}}\n",
      n, operands, result);
}

std::string convolution(int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<1x{0}x{0}x{1}xf32>, %k: tensor<3x3x{1}x{1}xf32>) -> "
      "tensor<1x{0}x{0}x{1}xf32> {{\n"
      " %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 "
      ": "
      "i64}} : (tensor<1x{0}x{0}x{1}xf32>, tensor<3x3x{1}x{1}xf32>) -> "
      "tensor<1x{0}x{0}x{1}xf32>\n return %r : tensor<1x{0}x{0}x{1}xf32>\n}}\n",
      n, kChannels);
}

std::string fft(int64_t n) {
  return fmt::format(
      "func.func @main(%x: tensor<{0}x{1}xcomplex<f32>>) -> tensor<{0}x{1}xcomplex<f32>> {{\n"
      " %r = stablehlo.fft %x, type = FFT, length = [{1}] : (tensor<{0}x{1}xcomplex<f32>>) -> "
      "tensor<{0}x{1}xcomplex<f32>>\n return %r : tensor<{0}x{1}xcomplex<f32>>\n}}\n",
      n, kTransform);
}

std::string one_dimension(int64_t n) { return std::to_string(n); }
std::string square(int64_t n) { return fmt::format("{0}x{0}", n); }
std::string rows(int64_t n) { return fmt::format("{} rows of {}", n, kWidth); }
std::string product(int64_t n) { return fmt::format("{0}x{0} . {0}x{0}", n); }
std::string image(int64_t n) { return fmt::format("{0}x{0}x{1}, 3x3", n, kChannels); }
std::string transforms(int64_t n) { return fmt::format("{} of {}", n, kTransform); }

double none(double) { return 0; }
double linear(double n) { return n; }
double cubic(double n) { return 2 * n * n * n; }

}  // namespace

const std::vector<MeasuredClass>& measured_classes() {
  static const std::vector<MeasuredClass> all = {
      {"multiply and add f32", 1024, 1, multiply_add, one_dimension,
       [](double n) { return 2 * n; }},
      {"exp f32", 1024, 1, [](int64_t n) { return unary("exponential", n); }, one_dimension,
       linear},
      {"tanh f32", 1024, 1, [](int64_t n) { return unary("tanh", n); }, one_dimension, linear},
      {"sum of rows f32", 32, 2, [](int64_t n) { return sum(n, 1); }, square,
       [](double n) { return n * n; }},
      {"sum of columns f32", 32, 2, [](int64_t n) { return sum(n, 0); }, square,
       [](double n) { return n * n; }},
      {"transpose f32", 32, 2, transpose, square, none},
      {"gather f32", 32, 1, gather, rows, none},
      {"scatter f32", 32, 1, scatter, rows, none},
      {"sort f32", 512, 1, sort, one_dimension, none},
      {"dot f32", 16, 3, [](int64_t n) { return dot(n, "f32", "f32"); }, product, cubic},
      {"dot bf16", 16, 3, [](int64_t n) { return dot(n, "bf16", "f32"); }, product, cubic},
      {"dot s8", 16, 3, [](int64_t n) { return dot(n, "i8", "i32"); }, product, cubic},
      {"convolution f32", 4, 2, convolution, image,
       [](double n) { return 2 * 9 * n * n * kChannels * kChannels; }},
      {"fft c64", 2, 1, fft, transforms,
       [](double n) { return 5 * n * kTransform * std::log2(double{kTransform}); }},
  };
  return all;
}

}  // namespace tenon::conformance
