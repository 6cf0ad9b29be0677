// The programs whose speed is judged: those that are measured, and others whose plain algorithms
// are easily missed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/measure/measure.h"
#include "conformance/measure/speed.h"

namespace tenon::conformance {
namespace {

double one_step(double n) { return n; }
double square_steps(double n) { return n * n; }
double rows_of_64(double n) { return 64 * n; }
double sort_steps(double n) { return n * std::log2(n); }
double cubic_steps(double n) { return 2 * n * n * n; }
double transform_steps(double n) { return 5 * n * std::log2(n); }
double window_steps(double n) { return 9 * n * n; }
// Threefry or Philox: some ten rounds of a few operations.
double random_steps(double n) { return 40 * n; }

// The text with n, n - 1 and n / 2 in place of $N, $P and $H.
std::function<std::string(int64_t)> sized(std::string_view text) {
  return [text](int64_t n) {
    std::string made;
    for (size_t i = 0; i < text.size(); ++i) {
      const char next = text[i] == '$' && i + 1 < text.size() ? text[i + 1] : '\0';
      const int64_t number = next == 'N' ? n : next == 'P' ? n - 1 : n / 2;
      if (next != 'N' && next != 'P' && next != 'H') {
        made += text[i];
        continue;
      }
      made += std::to_string(number);
      ++i;
    }
    return made;
  };
}

constexpr std::string_view kCumulativeSum = R"(
func.func @main(%a: tensor<$Nxf32>) -> tensor<$Nxf32> {
 %z = stablehlo.constant dense<0.0> : tensor<f32>
 %r = "stablehlo.reduce_window"(%a, %z) ({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
   %w = stablehlo.add %u, %v : tensor<f32>
   stablehlo.return %w : tensor<f32>
 }) {window_dimensions = array<i64: $N>, padding = dense<[[$P, 0]]> : tensor<1x2xi64>} : (tensor<$Nxf32>, tensor<f32>) -> tensor<$Nxf32>
 return %r : tensor<$Nxf32>
})";

constexpr std::string_view kScan = R"(
func.func @main(%a: tensor<$Nxf32>) -> tensor<$Nxf32> {
 %z = stablehlo.constant dense<0.0> : tensor<f32>
 %r, %s = "chlo.scan"(%a, %z) ({
  ^bb0(%x: tensor<f32>, %c: tensor<f32>):
   %d = stablehlo.add %c, %x : tensor<f32>
   stablehlo.return %d, %d : tensor<f32>, tensor<f32>
 }) {dimension = 0 : i64, is_reverse = false, operandSegmentSizes = array<i32: 1, 1>} : (tensor<$Nxf32>, tensor<f32>) -> (tensor<$Nxf32>, tensor<f32>)
 return %r : tensor<$Nxf32>
})";

constexpr std::string_view kSum = R"(
func.func @main(%a: tensor<$Nxf32>) -> tensor<f32> {
 %z = stablehlo.constant dense<0.0> : tensor<f32>
 %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<$Nxf32>, tensor<f32>) -> tensor<f32>
 return %r : tensor<f32>
})";

constexpr std::string_view kArgmax = R"(
func.func @main(%a: tensor<$Nxf32>, %i: tensor<$Nxi32>) -> tensor<i32> {
 %z = stablehlo.constant dense<-1.0e30> : tensor<f32>
 %k = stablehlo.constant dense<0> : tensor<i32>
 %r, %s = stablehlo.reduce(%a init: %z), (%i init: %k) across dimensions = [0] : (tensor<$Nxf32>, tensor<$Nxi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  reducer(%u: tensor<f32>, %x: tensor<f32>) (%v: tensor<i32>, %y: tensor<i32>) {
   %p = stablehlo.compare GE, %u, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
   %m = stablehlo.select %p, %u, %x : tensor<i1>, tensor<f32>
   %n = stablehlo.select %p, %v, %y : tensor<i1>, tensor<i32>
   stablehlo.return %m, %n : tensor<f32>, tensor<i32>
  }
 return %s : tensor<i32>
})";

constexpr std::string_view kTopK = R"(
func.func @main(%a: tensor<$Nxf32>) -> tensor<16xf32> {
 %r, %i = chlo.top_k(%a, k = 16) : tensor<$Nxf32> -> (tensor<16xf32>, tensor<16xi32>)
 return %r : tensor<16xf32>
})";

constexpr std::string_view kLongTransform = R"(
func.func @main(%a: tensor<$Nxcomplex<f32>>) -> tensor<$Nxcomplex<f32>> {
 %r = stablehlo.fft %a, type = FFT, length = [$N] : (tensor<$Nxcomplex<f32>>) -> tensor<$Nxcomplex<f32>>
 return %r : tensor<$Nxcomplex<f32>>
})";

constexpr std::string_view kMaxPool = R"(
func.func @main(%a: tensor<$Nx$Nxf32>) -> tensor<$Nx$Nxf32> {
 %z = stablehlo.constant dense<-1.0e30> : tensor<f32>
 %r = "stablehlo.reduce_window"(%a, %z) ({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
   %w = stablehlo.maximum %u, %v : tensor<f32>
   stablehlo.return %w : tensor<f32>
 }) {window_dimensions = array<i64: 3, 3>, padding = dense<1> : tensor<2x2xi64>} : (tensor<$Nx$Nxf32>, tensor<f32>) -> tensor<$Nx$Nxf32>
 return %r : tensor<$Nx$Nxf32>
})";

constexpr std::string_view kMaxPoolGradient = R"(
func.func @main(%a: tensor<$Nx$Nxf32>, %g: tensor<$Hx$Hxf32>) -> tensor<$Nx$Nxf32> {
 %z = stablehlo.constant dense<0.0> : tensor<f32>
 %r = "stablehlo.select_and_scatter"(%a, %g, %z) ({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
   %p = stablehlo.compare GE, %u, %v : (tensor<f32>, tensor<f32>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
 }, {
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
   %w = stablehlo.add %u, %v : tensor<f32>
   stablehlo.return %w : tensor<f32>
 }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>} : (tensor<$Nx$Nxf32>, tensor<$Hx$Hxf32>, tensor<f32>) -> tensor<$Nx$Nxf32>
 return %r : tensor<$Nx$Nxf32>
})";

constexpr std::string_view kReverse = R"(
func.func @main(%a: tensor<$Nxf32>) -> tensor<$Nxf32> {
 %r = stablehlo.reverse %a, dims = [0] : tensor<$Nxf32>
 return %r : tensor<$Nxf32>
})";

constexpr std::string_view kPad = R"(
func.func @main(%a: tensor<$Hxf32>, %z: tensor<f32>) -> tensor<$Pxf32> {
 %r = stablehlo.pad %a, %z, low = [0], high = [0], interior = [1] : (tensor<$Hxf32>, tensor<f32>) -> tensor<$Pxf32>
 return %r : tensor<$Pxf32>
})";

constexpr std::string_view kBits = R"(
func.func @main(%s: tensor<2xui64>) -> tensor<$Nxui32> {
 %t, %r = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<$Nxui32>)
 return %r : tensor<$Nxui32>
})";

constexpr std::string_view kLoop = R"(
func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
 %k = stablehlo.constant dense<0> : tensor<i32>
 %one = stablehlo.constant dense<1> : tensor<i32>
 %end = stablehlo.constant dense<$N> : tensor<i32>
 %r:2 = stablehlo.while(%i = %k, %x = %a) : tensor<i32>, tensor<64xf32>
  cond {
   %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
  } do {
   %j = stablehlo.add %i, %one : tensor<i32>
   %y = stablehlo.sine %x : tensor<64xf32>
   stablehlo.return %j, %y : tensor<i32>, tensor<64xf32>
  }
 return %r#1 : tensor<64xf32>
})";

constexpr std::string_view kUpdates = R"(
func.func @main(%a: tensor<$Nxf32>) -> tensor<$Nxf32> {
 %k = stablehlo.constant dense<0> : tensor<i32>
 %one = stablehlo.constant dense<1> : tensor<i32>
 %end = stablehlo.constant dense<$N> : tensor<i32>
 %r:2 = stablehlo.while(%i = %k, %x = %a) : tensor<i32>, tensor<$Nxf32>
  cond {
   %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
   stablehlo.return %p : tensor<i1>
  } do {
   %j = stablehlo.add %i, %one : tensor<i32>
   %e = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<$Nxf32>, tensor<i32>) -> tensor<1xf32>
   %f = stablehlo.negate %e : tensor<1xf32>
   %y = stablehlo.dynamic_update_slice %x, %f, %i : (tensor<$Nxf32>, tensor<1xf32>, tensor<i32>) -> tensor<$Nxf32>
   stablehlo.return %j, %y : tensor<i32>, tensor<$Nxf32>
  }
 return %r#1 : tensor<$Nxf32>
})";

// A symmetric matrix with a dominant diagonal: each other number is below 16.
constexpr std::string_view kCholesky = R"(
func.func @main(%a: tensor<$Nx$Nxf32>) -> tensor<$Nx$Nxf32> {
 %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<$Nx$Nxf32>) -> tensor<$Nx$Nxf32>
 %s = stablehlo.add %a, %t : tensor<$Nx$Nxf32>
 %i = stablehlo.iota dim = 0 : tensor<$Nx$Nxi32>
 %j = stablehlo.iota dim = 1 : tensor<$Nx$Nxi32>
 %p = stablehlo.compare EQ, %i, %j : (tensor<$Nx$Nxi32>, tensor<$Nx$Nxi32>) -> tensor<$Nx$Nxi1>
 %d = stablehlo.constant dense<$N.0> : tensor<$Nx$Nxf32>
 %c = stablehlo.constant dense<16.0> : tensor<$Nx$Nxf32>
 %e = stablehlo.multiply %c, %d : tensor<$Nx$Nxf32>
 %m = stablehlo.select %p, %e, %s : tensor<$Nx$Nxi1>, tensor<$Nx$Nxf32>
 %r = stablehlo.cholesky %m, lower = true : tensor<$Nx$Nxf32>
 return %r : tensor<$Nx$Nxf32>
})";

constexpr std::string_view kTriangularSolve = R"(
func.func @main(%a: tensor<$Nx$Nxf32>, %b: tensor<$Nx$Nxf32>) -> tensor<$Nx$Nxf32> {
 %r = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<$Nx$Nxf32>, tensor<$Nx$Nxf32>) -> tensor<$Nx$Nxf32>
 return %r : tensor<$Nx$Nxf32>
})";

// A class of `tenon conform --measure`, with the steps of its work.
SpeedClass measured(std::string name, std::string_view of, double (*steps)(double n)) {
  const auto found = std::ranges::find(measured_classes(), of,
                                       [](const MeasuredClass& each) { return each.name; });
  return {std::move(name), found->first, found->growth == 1 ? 4 : 2, found->program, steps};
}

}  // namespace

const std::vector<SpeedClass>& speed_classes() {
  static const std::vector<SpeedClass> all = {
      measured("multiply_add/f32", "multiply and add f32", one_step),
      measured("exp/f32", "exp f32", one_step),
      measured("tanh/f32", "tanh f32", one_step),
      measured("sum_of_rows/f32", "sum of rows f32", square_steps),
      measured("sum_of_columns/f32", "sum of columns f32", square_steps),
      {"sum/f32", 256, 4, sized(kSum), one_step},
      {"argmax/f32", 256, 4, sized(kArgmax), one_step},
      measured("transpose/f32", "transpose f32", square_steps),
      {"reverse/f32", 256, 4, sized(kReverse), one_step},
      {"pad/f32", 256, 4, sized(kPad), one_step},
      measured("gather/f32", "gather f32", rows_of_64),
      measured("scatter/f32", "scatter f32", rows_of_64),
      measured("sort/f32", "sort f32", sort_steps),
      {"top_k/f32", 256, 4, sized(kTopK), sort_steps},
      {"cumulative_sum/f32", 256, 4, sized(kCumulativeSum), one_step},
      {"scan/f32", 256, 4, sized(kScan), one_step, false},
      measured("dot/f32", "dot f32", cubic_steps),
      measured("dot/bf16", "dot bf16", cubic_steps),
      measured("dot/s8", "dot s8", cubic_steps),
      measured("convolution/f32", "convolution f32",
               [](double n) { return 2 * 9 * n * n * 32 * 32; }),
      {"max_pool/f32", 16, 2, sized(kMaxPool), window_steps},
      {"max_pool_gradient/f32", 16, 2, sized(kMaxPoolGradient), window_steps},
      measured("fft_batch/c64", "fft c64", [](double n) { return 5 * 256 * 8 * n; }),
      {"fft/c64", 64, 4, sized(kLongTransform), transform_steps},
      {"cholesky/f32", 8, 2, sized(kCholesky), cubic_steps},
      {"triangular_solve/f32", 8, 2, sized(kTriangularSolve), cubic_steps},
      {"random_bits/u32", 256, 4, sized(kBits), random_steps},
      {"loop/f32", 16, 4, sized(kLoop), rows_of_64, false},
      {"updates/f32", 16, 4, sized(kUpdates), one_step, false},
  };
  return all;
}

}  // namespace tenon::conformance
