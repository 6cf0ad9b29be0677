// A loop over scalars is one kernel: no steps per iteration.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: program @main: 1 kernels
// CHECK: entry
// CHECK-NEXT: 0: launch @while(
// CHECK-NOT: while %
// CHECK: kernel @while(
// CHECK: while(
func.func @main(%n: tensor<i32>) -> (tensor<i32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %a = %one) : tensor<i32>, tensor<f32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %b = stablehlo.multiply %a, %half : tensor<f32>
    %step = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %j, %b : tensor<i32>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<f32>
}
