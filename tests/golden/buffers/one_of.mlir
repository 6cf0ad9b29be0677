// Both branches return %s unchanged, so that the branches' result and %s are one buffer. The sum of the two
// could lie over either, but a kernel can declare only one input: the sum has its own memory.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: launch @sine(%0, %[[S:[0-9]+]])
// CHECK-NEXT: conditional
// CHECK: launch @add(%[[S]], %{{[0-9]+}}, %[[R:[0-9]+]])
// CHECK-NEXT: results %[[R]]
func.func @main(%x: tensor<2000xf32>, %p: tensor<i1>) -> tensor<2000xf32> {
  %s = stablehlo.sine %x : tensor<2000xf32>
  %c = "stablehlo.if"(%p) ({
    stablehlo.return %s : tensor<2000xf32>
  }, {
    stablehlo.return %s : tensor<2000xf32>
  }) : (tensor<i1>) -> tensor<2000xf32>
  %sum = stablehlo.add %s, %c : tensor<2000xf32>
  return %sum : tensor<2000xf32>
}
