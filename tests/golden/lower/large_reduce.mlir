// A large sum in two stages: a part begins with its first leaf; the init value enters in the second stage,
// together with the leaves that fill no part.
// RUN: tenon opt %s --emit=kernels | FileCheck %s

// CHECK: kernel @reduce_parts(%x0: in f32[1000003], %t0: out f32[244]) index s32 grid(%{{[0-9]+}}: 244)
// CHECK: reduce lanes(%{{[0-9]+}}: 4097) init(%{{[0-9]+}}) : f32 commutative {
// CHECK: kernel @reduce_total(%x0: in f32[1000003], %t0: in f32[244], %y: out f32[]) index s32 grid()
// CHECK: reduce lanes(%[[I:[0-9]+]]: 335) init(3.0) : f32 commutative {
// CHECK: lt %[[I]], 244 : s32
func.func @main(%x: tensor<1000003xf32>) -> tensor<f32> {
  %init = stablehlo.constant dense<3.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<1000003xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
