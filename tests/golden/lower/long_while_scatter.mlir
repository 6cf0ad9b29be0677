// A nested loop, with the inner one's array in the memory of the outer one's; updates scattered
// out of the array's bounds are dropped.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: launch @while_workgroup(
// CHECK-NEXT: results
// CHECK: kernel @while_workgroup({{.*}}%y1: inout s32[20000]) index s32 grid()
// CHECK-NOT: s32[20000]
// CHECK: if %{{[0-9]+}} {
// CHECK: store %{{[0-9]+}}, %y1[
// CHECK-NOT: s32[20000]
func.func @main(%a: tensor<20000xi32>) -> tensor<20000xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<20000xi32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s:2 = stablehlo.while(%k = %zero, %y = %x) : tensor<i32>, tensor<20000xi32>
    cond {
      %q = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %q : tensor<i1>
    } do {
      %at = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
      %z = "stablehlo.scatter"(%y, %at, %i) ({
      ^bb0(%old: tensor<i32>, %new: tensor<i32>):
        %t = stablehlo.subtract %old, %new : tensor<i32>
        stablehlo.return %t : tensor<i32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>} : (tensor<20000xi32>, tensor<1xi32>, tensor<i32>) -> tensor<20000xi32>
      %l = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %l, %z : tensor<i32>, tensor<20000xi32>
    }
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s#1 : tensor<i32>, tensor<20000xi32>
  }
  return %r#1 : tensor<20000xi32>
}
