// An elementwise result takes the memory of an operand whose last use it is.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: program @chain: 3 kernels, 0 constants, 0 bytes of temporaries
// CHECK: launch @sine(%0, %[[Y:[0-9]+]])
// CHECK-NEXT: launch @cosine(%[[Y]], %[[Y]])
// CHECK-NEXT: launch @add(%[[Y]], %0, %[[Y]])
// CHECK-NEXT: results %[[Y]]
func.func @chain(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.sine %x : tensor<64xf32>
  %1 = stablehlo.cosine %0 : tensor<64xf32>
  %2 = stablehlo.add %1, %x : tensor<64xf32>
  return %2 : tensor<64xf32>
}
