// A composite with the name of an op of CHLO is that op, if it has its operands and attributes.
// RUN: tenon opt %s --passes=inline-calls | FileCheck %s

// CHECK: func.func @main
// CHECK-NEXT: chlo.ragged_dot(%arg0, %arg1, %arg2) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : f32[6,2]
// CHECK-NEXT: stablehlo.slice
// CHECK-NEXT: stablehlo.negate
// CHECK-NEXT: stablehlo.slice
// CHECK-NEXT: stablehlo.negate
// CHECK-NEXT: stablehlo.return
func.func @main(%x: tensor<6x3xf32>, %w: tensor<4x3x2xf32>, %n: tensor<4xi32>) -> (tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>) {
  %0 = stablehlo.composite "chlo.ragged_dot" %x, %w, %n {composite_attributes = {ragged_dot_dimension_numbers = [dense<> : tensor<0xi64>, dense<> : tensor<0xi64>, dense<1> : tensor<1xi64>, dense<1> : tensor<1xi64>, dense<0> : tensor<1xi64>, dense<0> : tensor<1xi64>]}, decomposition = @ragged} : (tensor<6x3xf32>, tensor<4x3x2xf32>, tensor<4xi32>) -> tensor<6x2xf32>
  // Dimensions that do not fit, and none: the composite's own ops.
  %1 = stablehlo.composite "chlo.ragged_dot" %x, %w, %n {composite_attributes = {ragged_dot_dimension_numbers = [dense<> : tensor<0xi64>, dense<> : tensor<0xi64>, dense<1> : tensor<1xi64>, dense<2> : tensor<1xi64>, dense<7> : tensor<1xi64>, dense<0> : tensor<1xi64>]}, decomposition = @ragged} : (tensor<6x3xf32>, tensor<4x3x2xf32>, tensor<4xi32>) -> tensor<6x2xf32>
  %2 = stablehlo.composite "chlo.ragged_dot" %x, %w, %n {decomposition = @ragged} : (tensor<6x3xf32>, tensor<4x3x2xf32>, tensor<4xi32>) -> tensor<6x2xf32>
  return %0, %1, %2 : tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>
}
func.func private @ragged(%x: tensor<6x3xf32>, %w: tensor<4x3x2xf32>, %n: tensor<4xi32>) -> tensor<6x2xf32> {
  %0 = stablehlo.slice %x [0:6, 0:2] : (tensor<6x3xf32>) -> tensor<6x2xf32>
  %1 = stablehlo.negate %0 : tensor<6x2xf32>
  return %1 : tensor<6x2xf32>
}
