// A loop becomes steps if an iteration reads the array after changing it, unless it can read it before.
// RUN: tenon opt %s --emit=program | FileCheck %s
// RUN: tenon opt %s --passes=inline-calls,order-updates --emit=program | FileCheck %s --check-prefix=ORDERED

// CHECK: while
// CHECK-NOT: @while_workgroup

// ORDERED: launch @while_workgroup(
// ORDERED-NEXT: results
func.func @main(%a: tensor<20000xi32>) -> (tensor<i32>, tensor<20000xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %s = %zero, %x = %a) : tensor<i32>, tensor<i32>, tensor<20000xi32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %h = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
    %u = stablehlo.dynamic_update_slice %x, %h, %i : (tensor<20000xi32>, tensor<1xi32>, tensor<i32>) -> tensor<20000xi32>
    %e = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<20000xi32>, tensor<i32>) -> tensor<1xi32>
    %f = stablehlo.reshape %e : (tensor<1xi32>) -> tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %f, %u : tensor<i32>, tensor<i32>, tensor<20000xi32>
  }
  return %r#1, %r#2 : tensor<i32>, tensor<20000xi32>
}
