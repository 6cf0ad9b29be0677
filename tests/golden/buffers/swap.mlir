// Values that change places need copies: in each iteration one of them is saved.
// RUN: tenon opt %s --passes=inline-calls,decompose,flatten-fusions,fusion,dce --emit=program | FileCheck %s

// CHECK: program @swap
// CHECK: entry
// CHECK: do
// CHECK: copy %[[ASIDE:[0-9]+]] = %[[B:[0-9]+]]
// CHECK-NEXT: copy %[[B]] = %[[A:[0-9]+]]
// CHECK-NEXT: copy %[[A]] = %[[ASIDE]]
// CHECK-NOT: copy
// CHECK: results
func.func @swap(%x: tensor<2000xf32>, %y: tensor<2000xf32>, %n: tensor<i32>) -> (tensor<2000xf32>, tensor<2000xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %x, %b = %y) : tensor<i32>, tensor<2000xf32>, tensor<2000xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %b, %a : tensor<i32>, tensor<2000xf32>, tensor<2000xf32>
  }
  return %r#1, %r#2 : tensor<2000xf32>, tensor<2000xf32>
}
