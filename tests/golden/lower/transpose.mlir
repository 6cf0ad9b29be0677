// RUN: tenon opt %s --emit=kernels | FileCheck %s

// A tile is copied into scratch by rows and out by columns; its rows are padded by one element.
// CHECK: kernel @transpose_tiles(%x0: in f32[600,570], %y: out f32[570,600]) index s32 grid(%{{[0-9]+}}: 18, %{{[0-9]+}}: 19)
// CHECK: scratch %tile : f32[32,33]
// CHECK: copy box(32, 32) %tile[0, 0] by(0, 1) = %x0{{.*}} by(0, 1) pad 0.0
// A tile within the array is read without checks, one that reaches beyond it with them.
// CHECK: le %{{[0-9]+}}, 538 : s32
// CHECK: le %{{[0-9]+}}, 568 : s32
// CHECK: if
// CHECK-NEXT: lanes(%[[A:[0-9]+]]: 32, %[[B:[0-9]+]]: 32) {
// CHECK-NOT: if
// CHECK: load %tile[%[[B]], %[[A]]] : f32
// CHECK: } else {
// CHECK-NEXT: lanes(%[[C:[0-9]+]]: 32, %[[D:[0-9]+]]: 32) {
// CHECK: if
// CHECK-NEXT: load %tile[%[[D]], %[[C]]] : f32
func.func @main(%x: tensor<600x570xf32>) -> tensor<570x600xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<600x570xf32>) -> tensor<570x600xf32>
  return %0 : tensor<570x600xf32>
}
