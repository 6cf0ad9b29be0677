// Decomposable ops become primitive ones; the loop carries the state of rng.
// RUN: tenon opt %s --passes=decompose,dce | FileCheck %s
// RUN: tenon opt %s --passes=decompose,dce --print-after-each 2>&1 >/dev/null | FileCheck %s --check-prefix=EACH

// EACH: // after decompose
// EACH: // after dce

// CHECK-LABEL: func.func @main
// CHECK-NOT: chlo.
// CHECK: stablehlo.while(%2, %1, %0)
// CHECK: stablehlo.rng_bit_generator({{.*}}) {rng_algorithm = PHILOX} : u64[2], u32[4]
// CHECK: }) : s32[], f32[4], u64[2]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %s) : tensor<i32>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %dims = stablehlo.constant dense<4> : tensor<1xi64>
    %u = stablehlo.rng %low, %high, %dims, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    %b = stablehlo.add %a, %u : tensor<4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
