// A loop over small arrays is one kernel of one workgroup: the arrays in scratch memory, values that
// change places saved first. Its number of turns is known, so that it is a `for`.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: entry
// CHECK-NEXT: 0: launch @while_workgroup(
// CHECK-NEXT: results
// CHECK: kernel @while_workgroup({{.*}}) index s32 grid()
// CHECK: scratch %s : f32[8]
// CHECK: for %{{[0-9]+}} = (0, 5, 1) {
// CHECK: lanes(
// CHECK: store 5, %y0[] : s32
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %x, %b = %y) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %c = stablehlo.add %a, %b : tensor<8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %b, %c : tensor<i32>, tensor<8xf32>, tensor<8xf32>
  }
  return %r#1, %r#2 : tensor<8xf32>, tensor<8xf32>
}
