// RUN: tenon opt %s --emit=kernels | FileCheck %s

// A few tiles of a unit without a given number of lanes leave no rest, and need no checks.
// CHECK: kernel @transpose_tiles(%x0: in f32[120,100], %y: out f32[100,120]) index s32 grid(%{{[0-9]+}}: 4, %{{[0-9]+}}: 3)
// CHECK: scratch %tile : f32[40,26]
// CHECK-NOT: if
// CHECK: lanes(%{{[0-9]+}}: 25, %{{[0-9]+}}: 40) {
// CHECK-NOT: if
func.func @main(%x: tensor<120x100xf32>) -> tensor<100x120xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<120x100xf32>) -> tensor<100x120xf32>
  return %0 : tensor<100x120xf32>
}
