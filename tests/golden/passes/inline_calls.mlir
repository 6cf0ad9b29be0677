// Calls, composites and asynchronous computations are replaced by their ops; no calls are left.
// RUN: tenon opt %s --passes=inline-calls | FileCheck %s

// CHECK: func.func @main
// CHECK-NEXT: stablehlo.add(%arg0, %arg0)
// CHECK-NEXT: stablehlo.multiply(%0, %0)
// CHECK-NEXT: stablehlo.negate(%1)
// CHECK-NEXT: stablehlo.return(%2)
// CHECK-NOT: func.func
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.composite "my.square" %0 {decomposition = @square} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = stablehlo.negate %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @square(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
