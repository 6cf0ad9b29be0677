#include "conformance/generate/programs.h"

namespace tenon::conformance {

const std::vector<SmallProgram>& small_programs() {
  static const std::vector<SmallProgram> programs = {
      {"add", R"(func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
})"},
      {"chain", R"(func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.exponential %x : tensor<3x5xf32>
  %1 = stablehlo.tanh %0 : tensor<3x5xf32>
  %2 = stablehlo.multiply %1, %x : tensor<3x5xf32>
  return %2 : tensor<3x5xf32>
})"},
      {"constants", R"(func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %1 = stablehlo.constant dense<[[7.0, -1.0, 0.5], [0.0, 2.5, -3.0]]> : tensor<2x3xf32>
  %2 = stablehlo.multiply %x, %0 : tensor<2x3xf32>
  %3 = stablehlo.subtract %2, %1 : tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
})"},
      {"sums", R"(func.func @main(%x: tensor<4x6xf32>) -> (tensor<4xf32>, tensor<6xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0, %1 : tensor<4xf32>, tensor<6xf32>
})"},
      {"contraction",
       R"(func.func @main(%x: tensor<3x4xf32>, %y: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
})"},
      {"loop", R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c5 = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %c5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %c1 : tensor<i32>
    %2 = stablehlo.add %a, %a : tensor<4xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
})"},
      {"branches", R"(func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %1 = stablehlo.multiply %x, %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})"},
      {"donation",
       R"(func.func @main(%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %y : tensor<8xf32>
  return %0 : tensor<8xf32>
})"},
      {"sort", R"(func.func @main(%x: tensor<3x7xi32>) -> tensor<3x7xi32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x7xi32>) -> tensor<3x7xi32>
  return %0 : tensor<3x7xi32>
})"},
      {"gather", R"(func.func @main(%x: tensor<5x3xf32>, %i: tensor<4xi32>) -> tensor<4x3xf32> {
  %0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>} : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
})"},
      {"scatter",
       R"(func.func @main(%x: tensor<6xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<6xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<6xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
})"},
      {"convolution",
       R"(func.func @main(%x: tensor<1x5x5x2xf32>, %w: tensor<3x3x2x2xf32>) -> tensor<1x3x3x2xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x2xf32>, tensor<3x3x2x2xf32>) -> tensor<1x3x3x2xf32>
  return %0 : tensor<1x3x3x2xf32>
})"},
      {"double", R"(func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf64>
  %1 = stablehlo.add %0, %x : tensor<4xf64>
  return %1 : tensor<4xf64>
})"},
      {"integers",
       R"(func.func @main(%x: tensor<5xi64>, %y: tensor<5xi64>) -> (tensor<5xi64>, tensor<5xi8>) {
  %0 = stablehlo.divide %x, %y : tensor<5xi64>
  %1 = stablehlo.convert %0 : (tensor<5xi64>) -> tensor<5xi8>
  return %0, %1 : tensor<5xi64>, tensor<5xi8>
})"},
      {"complex",
       R"(func.func @main(%x: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>, tensor<3xf32>) {
  %0 = stablehlo.multiply %x, %x : tensor<3xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  return %0, %1 : tensor<3xcomplex<f32>>, tensor<3xf32>
})"},
      {"slices",
       R"(func.func @main(%x: tensor<4x4xf32>, %i: tensor<i32>, %u: tensor<1x4xf32>) -> tensor<2x4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %c : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  %1 = stablehlo.slice %0 [1:3, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
})"},
      {"random bits", R"(func.func @main(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui32>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui32>)
  return %0, %1 : tensor<2xui64>, tensor<6xui32>
})"},
      {"narrow",
       R"(func.func @main(%x: tensor<6xbf16>, %y: tensor<6xf16>) -> (tensor<6xf32>, tensor<6xi1>) {
  %0 = stablehlo.convert %x : (tensor<6xbf16>) -> tensor<6xf32>
  %1 = stablehlo.convert %y : (tensor<6xf16>) -> tensor<6xf32>
  %2 = stablehlo.add %0, %1 : tensor<6xf32>
  %3 = stablehlo.compare GT, %0, %1 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  return %2, %3 : tensor<6xf32>, tensor<6xi1>
})"},
      {"arguments given back",
       R"(func.func @main(%x: tensor<3xf32>, %e: tensor<0x2xf32>) -> (tensor<3xf32>, tensor<0x2xf32>, tensor<3xf32>) {
  return %x, %e, %x : tensor<3xf32>, tensor<0x2xf32>, tensor<3xf32>
})",
       false},
      {"softmax", R"(func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<4x8xf32>
  %3 = stablehlo.exponential %2 : tensor<4x8xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %6 = stablehlo.divide %3, %5 : tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
})"},
  };
  return programs;
}

}  // namespace tenon::conformance
