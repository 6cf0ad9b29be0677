// Positions in a row of more than 2^30 elements do not fit s32 arithmetic. One kernel serves all passes, whatever they read.
// RUN: tenon opt %s --emit=kernels | FileCheck %s

// CHECK: kernel @sort_merge({{.*}}) index s64
// CHECK-NOT: kernel @sort_merge_2
func.func @main(%x: tensor<1500000000xi16>) -> tensor<1500000000xi16> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i16>, %b: tensor<i16>):
    %p = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i16>, tensor<i16>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<1500000000xi16>) -> tensor<1500000000xi16>
  return %0 : tensor<1500000000xi16>
}
