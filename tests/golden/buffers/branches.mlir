// Branches write their results to the memory of the conditional's results.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: program @branches
// CHECK: launch @sine(%0, %[[R:[0-9]+]])
// CHECK-NEXT: conditional
// CHECK-NEXT: branch 0
// CHECK-NEXT: launch @cosine(%[[R]], %[[R]])
// CHECK-NEXT: branch 1
// CHECK-NEXT: results %[[R]]
func.func @branches(%x: tensor<2000xf32>, %p: tensor<i1>) -> tensor<2000xf32> {
  %0 = stablehlo.sine %x : tensor<2000xf32>
  %1 = "stablehlo.if"(%p) ({
    %2 = stablehlo.cosine %0 : tensor<2000xf32>
    stablehlo.return %2 : tensor<2000xf32>
  }, {
    stablehlo.return %0 : tensor<2000xf32>
  }) : (tensor<i1>) -> tensor<2000xf32>
  return %1 : tensor<2000xf32>
}
