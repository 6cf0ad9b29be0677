// A loop over long arrays, of which each iteration changes a small part, is one kernel too: such an array is
// in the memory of the result, initialised by a copy that is omitted if the argument is donated.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: entry
// CHECK-NEXT: 0: copy [[RESULT:%[0-9]+]] = %1
// CHECK-NEXT: 1: launch @while_workgroup(%0, {{.*}}[[RESULT]])
// CHECK-NEXT: results
// CHECK: kernel @while_workgroup(%x1: in f32[20000], {{.*}}%y2: inout f32[20000]) index s32 grid()
// CHECK-NOT: f32[20000]
// CHECK: for %[[I:[0-9]+]] = (0, 20000, 1) carry(%[[SUM:[0-9]+]] = 0.0) : f32 {
// CHECK-NOT: scratch
// CHECK: store %[[SUM]], %y2[{{.*}}] : f32
func.func @main(%x: tensor<20000xf32>, %y: tensor<20000xf32>) -> (tensor<f32>, tensor<20000xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %r:3 = stablehlo.while(%i = %zero, %s = %c, %ys = %y) : tensor<i32>, tensor<f32>, tensor<20000xf32>
  cond {
    %n = stablehlo.constant dense<20000> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %e = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<20000xf32>, tensor<i32>) -> tensor<1xf32>
    %f = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>
    %t = stablehlo.add %s, %f : tensor<f32>
    %h = stablehlo.reshape %s : (tensor<f32>) -> tensor<1xf32>
    %u = stablehlo.dynamic_update_slice %ys, %h, %i : (tensor<20000xf32>, tensor<1xf32>, tensor<i32>) -> tensor<20000xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %u : tensor<i32>, tensor<f32>, tensor<20000xf32>
  }
  return %r#1, %r#2 : tensor<f32>, tensor<20000xf32>
}
