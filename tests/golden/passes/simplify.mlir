// The passes in turn, until nothing changes: the carried flag is always true, so the branch is
// known, so its number is a constant, so the product is removed.
// RUN: tenon opt %s --passes=simplify | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.while(%{{[0-9]+}}, %arg0)
// CHECK-NOT: stablehlo.if
// CHECK-NOT: stablehlo.multiply
// CHECK: stablehlo.sine
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %r:3 = stablehlo.while(%i = %zero, %flag = %yes, %v = %x) : tensor<i32>, tensor<i1>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %k = "stablehlo.if"(%flag) ({
      %a = stablehlo.constant dense<1.0> : tensor<4xf32>
      stablehlo.return %a : tensor<4xf32>
    }, {
      %b = stablehlo.exponential %v : tensor<4xf32>
      stablehlo.return %b : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %m = stablehlo.multiply %v, %k : tensor<4xf32>
    %s = stablehlo.sine %m : tensor<4xf32>
    stablehlo.return %j, %flag, %s : tensor<i32>, tensor<i1>, tensor<4xf32>
  }
  return %r#2 : tensor<4xf32>
}
