// One workgroup per long row, whose lanes share the reduction; the combination is proved to
// be commutative.
// RUN: tenon opt %s --emit=kernels | FileCheck %s

// CHECK: kernel @reduce_rows(%x0: in f32[8,1000], %y: out f32[8]) index s32 grid(%[[I:[0-9]+]]: 8)
// CHECK-NEXT: %[[R:[0-9]+]] = reduce lanes(%[[J:[0-9]+]]: 1000) init(0.0) : f32 commutative {
// CHECK-NEXT: load %x0[%[[I]], %[[J]]] : f32
// CHECK: store %[[R]], %y[%[[I]]] : f32

// CHECK: kernel @reduce(%x0: in f32[8,1000], %y: out f32[1000])
// CHECK: reduce serial({{.*}}: 8) init(0.0) : f32 commutative {
func.func @main(%x: tensor<8x1000xf32>) -> (tensor<8xf32>, tensor<1000xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x1000xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x1000xf32>, tensor<f32>) -> tensor<1000xf32>
  return %0, %1 : tensor<8xf32>, tensor<1000xf32>
}
