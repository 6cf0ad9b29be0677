// A fused softmax: one workgroup per row, two reductions over its lanes, with the exponentials in
// scratch between them.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: program @main: 1 kernels, 0 constants, 0 bytes of temporaries
// CHECK: 0: launch @softmax_rows(%0, %1)
// CHECK: kernel @softmax_rows(%x0: in f32[8,1000], %y: out f32[8,1000]) index s32 grid(%[[I:[0-9]+]]: 8)
// CHECK-NEXT: scratch %row : f32[1000]
// CHECK-NEXT: %[[M:[0-9]+]] = reduce lanes({{.*}}: 1000) init(-inf) : f32 commutative {
// CHECK: lanes(%[[J:[0-9]+]]: 1000) {
// CHECK: sub %{{[0-9]+}}, %[[M]] : f32
// CHECK: exp
// CHECK: store %{{[0-9]+}}, %row[%[[J]]] : f32
// CHECK: %[[S:[0-9]+]] = reduce lanes({{.*}}: 1000) init(0.0) : f32 commutative {
// CHECK: load %row
// CHECK: lanes(
// CHECK: load %row
// CHECK-NEXT: div %{{[0-9]+}}, %[[S]] : f32
// CHECK-NOT: exp
func.func @main(%x: tensor<8x1000xf32>) -> tensor<8x1000xf32> {
  %0 = "tenon.fusion"(%x) <{fusion_kind = "softmax"}> ({
  ^bb0(%a: tensor<8x1000xf32>):
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x1000xf32>, tensor<f32>) -> tensor<8xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x1000xf32>
    %d = stablehlo.subtract %a, %mb : tensor<8x1000xf32>
    %e = stablehlo.exponential %d : tensor<8x1000xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x1000xf32>, tensor<f32>) -> tensor<8xf32>
    %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> tensor<8x1000xf32>
    %y = stablehlo.divide %e, %sb : tensor<8x1000xf32>
    stablehlo.return %y : tensor<8x1000xf32>
  }) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
  return %0 : tensor<8x1000xf32>
}
