// Pads and concatenations of short rows become those of long rows. Others stay:
// hlo/passes/normalize/short_rows_test.cpp.
// RUN: tenon opt %s --passes=merge-rows | FileCheck %s

// CHECK-LABEL: func.func @padded(
// CHECK: %[[A:[0-9]+]] = stablehlo.reshape(%arg0) : f32[8,32,96]
// CHECK: %[[P:[0-9]+]] = stablehlo.pad(%[[A]], %{{[a-z0-9]+}}){{.*}} : f32[8,32,108]
// CHECK: stablehlo.reshape(%[[P]]) : f32[8,32,36,3]
func.func @padded(%x: tensor<8x32x32x3xf32>) -> tensor<8x32x36x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.pad %x, %zero, low = [0, 0, 2, 0], high = [0, 0, 2, 0], interior = [0, 0, 0, 0] : (tensor<8x32x32x3xf32>, tensor<f32>) -> tensor<8x32x36x3xf32>
  return %r : tensor<8x32x36x3xf32>
}

// CHECK-LABEL: func.func @joined(
// CHECK: stablehlo.concatenate({{.*}}) {dimension = 2} : f32[8,32,192]
func.func @joined(%x: tensor<8x32x32x3xf32>) -> tensor<8x32x64x3xf32> {
  %r = stablehlo.concatenate %x, %x, dim = 2 : (tensor<8x32x32x3xf32>, tensor<8x32x32x3xf32>) -> tensor<8x32x64x3xf32>
  return %r : tensor<8x32x64x3xf32>
}
