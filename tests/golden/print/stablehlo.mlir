// The pretty forms that StableHLO tools can read.
// RUN: tenon opt %s --emit=stablehlo | FileCheck %s

// CHECK: module @forms {
module @forms {
  // CHECK: func.func public @main(%arg0: tensor<4x8xf32> {jax.arg_info = "x"}, %arg1: tensor<8xf32>) -> (tensor<4x8xf32>) {
  func.func public @main(%x: tensor<4x8xf32> {jax.arg_info = "x"}, %bias: tensor<8xf32>) -> tensor<4x8xf32> {
    // CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %0 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    // CHECK-NEXT: %1 = stablehlo.add %arg0, %0 : tensor<4x8xf32>
    %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
    // CHECK-NEXT: %2 = stablehlo.slice %1 [0:4:2, 1:5] : (tensor<4x8xf32>) -> tensor<2x4xf32>
    %2 = stablehlo.slice %1 [0:4:2, 1:5] : (tensor<4x8xf32>) -> tensor<2x4xf32>
    // CHECK-NEXT: %3 = stablehlo.compare LT, %1, %0, TOTALORDER : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %3 = stablehlo.compare LT, %1, %0, TOTALORDER : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    // CHECK-NEXT: %4 = stablehlo.select %3, %1, %0 : tensor<4x8xi1>, tensor<4x8xf32>
    %4 = stablehlo.select %3, %1, %0 : tensor<4x8xi1>, tensor<4x8xf32>
    // CHECK-NEXT: %5 = stablehlo.dot_general %4, %2, contracting_dims = [0] x [1], precision = [HIGHEST, DEFAULT]
    %5 = stablehlo.dot_general %4, %2, contracting_dims = [0] x [1], precision = [HIGHEST, DEFAULT] : (tensor<4x8xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
    // CHECK-NEXT: %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    // CHECK-NEXT: %7 = stablehlo.reduce(%5 init: %6) across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
    // CHECK-NEXT:  reducer(%arg2: tensor<f32>, %arg3: tensor<f32>) {
    // CHECK-NEXT:   %8 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
    // CHECK-NEXT:   stablehlo.return %8 : tensor<f32>
    // CHECK-NEXT: }
    %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.maximum across dimensions = [1] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8xf32>
    // CHECK-NEXT: %9 = func.call @helper(%7) : (tensor<8xf32>) -> tensor<8xf32>
    %8 = call @helper(%7) : (tensor<8xf32>) -> tensor<8xf32>
    // CHECK-NEXT: func.return %1 : tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
  // CHECK: func.func private @helper(%arg0: tensor<8xf32>) -> (tensor<8xf32>) {
  func.func private @helper(%x: tensor<8xf32>) -> tensor<8xf32> {
    // CHECK-NEXT: %0 = chlo.erf %arg0 : tensor<8xf32> -> tensor<8xf32>
    %0 = chlo.erf %x : tensor<8xf32> -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
