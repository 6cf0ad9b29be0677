// Rows that are computed from a number each, and from one row, are reduced by one lane each: no
// array of rows is read.
//
// RUN: tenon opt %s --device cpu --emit=kernels | FileCheck %s
//
// CHECK: kernel @{{[a-z_0-9]*}}rows
// CHECK: reduce serial(%{{[0-9]+}}: 50)
func.func @main(%x: tensor<4096xf32>, %y: tensor<50xf32>) -> tensor<4096xi1> {
  %no = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<4096xf32>) -> tensor<4096x50xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<50xf32>) -> tensor<4096x50xf32>
  %2 = stablehlo.compare EQ, %0, %1, FLOAT : (tensor<4096x50xf32>, tensor<4096x50xf32>) -> tensor<4096x50xi1>
  %3 = stablehlo.reduce(%2 init: %no) applies stablehlo.or across dimensions = [1] : (tensor<4096x50xi1>, tensor<i1>) -> tensor<4096xi1>
  return %3 : tensor<4096xi1>
}
