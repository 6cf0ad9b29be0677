// Sizes that follow from the argument shape become static; the arithmetic on them is removed.
// RUN: tenon opt %s --shape 0=2x4 --emit=hlo | FileCheck %s

// CHECK: func.func @main(%arg0: f32[2,4]) -> (f32[2,4])
// CHECK-NOT: dynamic
// CHECK: stablehlo.broadcast_in_dim({{.*}}) {broadcast_dimensions = [0]} : f32[2,4]
// CHECK-NOT: ?
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1]
      : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
  %shape = "stablehlo.get_dimension_size"(%x) {dimension = 0 : i64} : (tensor<?x4xf32>) -> tensor<i32>
  %rows = stablehlo.reshape %shape : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %dims = stablehlo.concatenate %rows, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %max_b = stablehlo.dynamic_broadcast_in_dim %max, %dims, dims = [0]
      : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %y = stablehlo.subtract %x, %max_b : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
