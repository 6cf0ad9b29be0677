// A loop also becomes steps if an iteration changes the whole array.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: while
// CHECK-NOT: @while_workgroup
func.func @main(%a: tensor<20000xi32>) -> tensor<20000xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<20000xi32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %y = stablehlo.negate %x : tensor<20000xi32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<20000xi32>
  }
  return %r#1 : tensor<20000xi32>
}
