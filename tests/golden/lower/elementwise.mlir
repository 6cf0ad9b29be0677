// One kernel per op; the reshape is a view; a scalar constant is written where it is used; the two
// equal kernels become one.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: program @main: 2 kernels, 0 constants
// CHECK: %0: f32[4,3] parameter 0
// CHECK: %{{[0-9]+}}: f32[4,3] view of %{{[0-9]+}}
// CHECK: entry
// CHECK-NEXT: 0: launch @add(%0, %1)
// CHECK-SAME: stablehlo.add at
// CHECK-NEXT: 1: launch @exponential(%{{[0-9]+}}, %{{[0-9]+}}) after 0
// CHECK-NEXT: 2: launch @exponential(%{{[0-9]+}}, %{{[0-9]+}}) after 1

// CHECK: kernel @add(%x0: in f32[4,3], %y: out f32[4,3]) index s32 grid(
// CHECK: %[[X:[0-9]+]] = load %x0
// CHECK: add %[[X]], 1.0 : f32
func.func @main(%x: tensor<4x3xf32>) -> tensor<12xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<4x3xf32>
  %0 = stablehlo.add %x, %one : tensor<4x3xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x3xf32>) -> tensor<12xf32>
  %2 = stablehlo.exponential %1 : tensor<12xf32>
  %3 = stablehlo.exponential %2 : tensor<12xf32>
  return %3 : tensor<12xf32>
}
