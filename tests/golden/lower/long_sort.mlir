// Positions in a row of more than 2^30 elements do not fit s32 arithmetic.
// RUN: tenon opt %s --emit=kernels | FileCheck %s

// CHECK-NOT: index s32
// CHECK: kernel @sort_runs({{.*}}) index s64
func.func @main(%x: tensor<1500000000xi8>) -> tensor<1500000000xi8> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    %p = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<1500000000xi8>) -> tensor<1500000000xi8>
  return %0 : tensor<1500000000xi8>
}
