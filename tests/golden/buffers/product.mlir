// A product reads elements at other indices than it writes: its result must not overlap its operands.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: program @product
// CHECK: launch @sine(%0, %[[S:[0-9]+]])
// CHECK-NEXT: launch @dot_general_tiles(%[[S]], %[[R:[0-9]+]])
// CHECK-NEXT: results %[[R]]
func.func @product(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.sine %x : tensor<8x8xf32>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
