// A transpose of short rows becomes two of long rows. Others stay: hlo/passes/normalize/layouts_test.cpp.
// RUN: tenon opt %s --passes=split-transposes | FileCheck %s

// CHECK-LABEL: func.func @filter(
// CHECK-NEXT: %[[A:[0-9]+]] = stablehlo.reshape(%arg0) : f32[64,288]
// CHECK-NEXT: %[[B:[0-9]+]] = stablehlo.transpose(%[[A]]) {permutation = [1, 0]} : f32[288,64]
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.reshape(%[[B]]) : f32[32,9,64]
// CHECK-NEXT: %[[D:[0-9]+]] = stablehlo.transpose(%[[C]]) {permutation = [1, 0, 2]} : f32[9,32,64]
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.reshape(%[[D]]) : f32[3,3,32,64]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @filter(%w: tensor<64x32x3x3xf32>) -> tensor<3x3x32x64xf32> {
  %r = stablehlo.transpose %w, dims = [2, 3, 1, 0] : (tensor<64x32x3x3xf32>) -> tensor<3x3x32x64xf32>
  return %r : tensor<3x3x32x64xf32>
}

// CHECK-LABEL: func.func @and_back(
// CHECK: %[[B:[0-9]+]] = stablehlo.transpose(%{{[0-9]+}}) {permutation = [1, 0, 2]} : f32[32,9,64]
// CHECK: stablehlo.transpose(%{{[0-9]+}}) {permutation = [1, 0]} : f32[64,288]
func.func @and_back(%w: tensor<3x3x32x64xf32>) -> tensor<64x32x3x3xf32> {
  %r = stablehlo.transpose %w, dims = [3, 2, 0, 1] : (tensor<3x3x32x64xf32>) -> tensor<64x32x3x3xf32>
  return %r : tensor<64x32x3x3xf32>
}
