// RUN: tenon opt %s --passes decompose | FileCheck %s
// Groups of rows are multiplied by blocks: a block of 64 rows at a time, within a loop over the groups.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_slice({{.*}}) {slice_sizes = [1, 3, 2]}
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_slice({{.*}}) {slice_sizes = [64, 3]}
// CHECK: stablehlo.dot_general({{.*}}f32[64,2]
// CHECK: stablehlo.dynamic_update_slice
func.func @main(%x: tensor<330x3xf32>, %w: tensor<8x3x2xf32>, %sizes: tensor<8xi64>) -> tensor<330x2xf32> {
  %y = "chlo.ragged_dot"(%x, %w, %sizes) {ragged_dot_dimension_numbers = #chlo.ragged_dot<
    lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}
    : (tensor<330x3xf32>, tensor<8x3x2xf32>, tensor<8xi64>) -> tensor<330x2xf32>
  return %y : tensor<330x2xf32>
}
