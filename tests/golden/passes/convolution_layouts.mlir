// Filters that end in the window end in their outputs, and arrays of few places in their features. Others stay:
// hlo/passes/normalize/layouts_test.cpp.
// RUN: tenon opt %s --passes=convolution-layouts | FileCheck %s

// CHECK-LABEL: func.func @few_places(
// CHECK: %[[W:[0-9]+]] = stablehlo.transpose(%arg1) {permutation = [2, 3, 1, 0]} : f32[3,3,32,16]
// CHECK: %[[X:[0-9]+]] = stablehlo.transpose(%arg0) {permutation = [0, 2, 3, 1]} : f32[4,8,8,32]
// CHECK: %[[R:[0-9]+]] = stablehlo.convolution(%[[X]], %[[W]]) {{.*}}<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
// CHECK: %[[B:[0-9]+]] = stablehlo.transpose(%[[R]]) {permutation = [0, 3, 1, 2]} : f32[4,16,8,8]
// CHECK-NEXT: stablehlo.return(%[[B]])
func.func @few_places(%x: tensor<4x32x8x8xf32>, %w: tensor<16x32x3x3xf32>) -> tensor<4x16x8x8xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<4x32x8x8xf32>, tensor<16x32x3x3xf32>) -> tensor<4x16x8x8xf32>
  return %r : tensor<4x16x8x8xf32>
}

// CHECK-LABEL: func.func @many_places(
// CHECK: %[[W:[0-9]+]] = stablehlo.transpose(%arg1) {permutation = [2, 3, 1, 0]} : f32[3,3,32,16]
// CHECK: %[[R:[0-9]+]] = stablehlo.convolution(%arg0, %[[W]]) {{.*}}<[b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1]>
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @many_places(%x: tensor<1x32x20x20xf32>, %w: tensor<16x32x3x3xf32>) -> tensor<1x16x20x20xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x32x20x20xf32>, tensor<16x32x3x3xf32>) -> tensor<1x16x20x20xf32>
  return %r : tensor<1x16x20x20xf32>
}

// CHECK-LABEL: func.func @features_last(
// CHECK-NEXT: stablehlo.convolution(%arg0, %arg1)
func.func @features_last(%x: tensor<4x8x8x32xf32>, %w: tensor<3x3x32x16xf32>) -> tensor<4x8x8x16xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<4x8x8x32xf32>, tensor<3x3x32x16xf32>) -> tensor<4x8x8x16xf32>
  return %r : tensor<4x8x8x16xf32>
}
