// Gradients of pools get a dimension last along which windows do not move. Others stay: hlo/passes/normalize/layouts_test.cpp.
// RUN: tenon opt %s --passes=window-layouts | FileCheck %s

// CHECK-LABEL: func.func @channels_first(
// CHECK: %[[X:[0-9]+]] = stablehlo.transpose(%arg0) {permutation = [0, 2, 3, 1]} : f32[2,12,12,12]
// CHECK: %[[G:[0-9]+]] = stablehlo.transpose(%arg1) {permutation = [0, 2, 3, 1]} : f32[2,6,6,12]
// CHECK: %[[R:[0-9]+]] = stablehlo.select_and_scatter(%[[X]], %[[G]], %{{[0-9]+}}) {padding = {{\[\[}}0, 0], [1, 0], [1, 0], [0, 0]], window_dimensions = [1, 3, 3, 1], window_strides = [1, 2, 2, 1]}
// CHECK: %[[B:[0-9]+]] = stablehlo.transpose(%[[R]]) {permutation = [0, 3, 1, 2]} : f32[2,12,12,12]
// CHECK-NEXT: stablehlo.return(%[[B]])
func.func @channels_first(%x: tensor<2x12x12x12xf32>, %g: tensor<2x12x6x6xf32>) -> tensor<2x12x12x12xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %g, %z) <{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>,
      padding = dense<[[0, 0], [0, 0], [1, 0], [1, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x12x12x12xf32>, tensor<2x12x6x6xf32>, tensor<f32>) -> tensor<2x12x12x12xf32>
  return %r : tensor<2x12x12x12xf32>
}
