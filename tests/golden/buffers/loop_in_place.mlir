// A loop's state is updated in place: nothing is copied at the end of an iteration, and before the loop only
// those arguments and constants that the loop changes. The stacked results are in their final memory
// from the first iteration on; values that the loop only reads are not copied.
// RUN: tenon opt %s --passes=inline-calls,decompose,flatten-fusions,fusion,dce --emit=program | FileCheck %s

// CHECK: %[[XS:[0-9]+]]: f32[100,2048] parameter 0
// CHECK: %[[C0:[0-9]+]]: f32[2048] parameter 1
// CHECK: %[[I:[0-9]+]]: s32[] temporary
// CHECK: %[[C:[0-9]+]]: f32[2048] result 0
// CHECK: %[[YS:[0-9]+]]: f32[100,2048] result 1
// CHECK: %[[T:[0-9]+]]: f32[1,2048] view of %[[C]]
// CHECK: entry
// CHECK-NEXT: launch @broadcast_in_dim(%[[YS]])
// CHECK-NEXT: copy %[[I]] =
// CHECK-NEXT: copy %[[C]] = %[[C0]]
// CHECK-NEXT: {{[0-9]+}}: while
// CHECK-NEXT: launch @compare(
// CHECK-NEXT: do
// CHECK-NEXT: launch @elements(%[[XS]], %[[I]], %[[C]], %[[C]])
// CHECK-NEXT: launch @dynamic_update_slice(%[[T]], %[[I]], %[[YS]])
// CHECK-NEXT: launch @add(%[[I]], %[[I]])
// CHECK-NEXT: results %[[C]] %[[YS]]

// The kernel declares which buffer lies over which; the update stores only its slice.
// CHECK: kernel @elements({{.*}}%y: out f32[2048] over %x2)
// CHECK: kernel @dynamic_update_slice({{.*}}%y: inout f32[100,2048])
// CHECK: lanes(%{{[0-9]+}}: 1, %{{[0-9]+}}: 256) {
func.func @main(%xs: tensor<100x2048xf32>, %c0: tensor<2048xf32>) -> (tensor<2048xf32>, tensor<100x2048xf32>) {
  %first = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ys0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<100x2048xf32>
  %r:4 = stablehlo.while(%x = %xs, %i = %first, %c = %c0, %ys = %ys0) : tensor<100x2048xf32>, tensor<i32>, tensor<2048xf32>, tensor<100x2048xf32>
  cond {
    %n = stablehlo.constant dense<100> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.dynamic_slice %x, %i, %o, sizes = [1, 2048] : (tensor<100x2048xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2048xf32>
    %row = stablehlo.reshape %s : (tensor<1x2048xf32>) -> tensor<2048xf32>
    %sum = stablehlo.add %c, %row : tensor<2048xf32>
    %t = stablehlo.tanh %sum : tensor<2048xf32>
    %slice = stablehlo.reshape %t : (tensor<2048xf32>) -> tensor<1x2048xf32>
    %next = stablehlo.dynamic_update_slice %ys, %slice, %i, %o : (tensor<100x2048xf32>, tensor<1x2048xf32>, tensor<i32>, tensor<i32>) -> tensor<100x2048xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %x, %j, %t, %next : tensor<100x2048xf32>, tensor<i32>, tensor<2048xf32>, tensor<100x2048xf32>
  }
  return %r#2, %r#3 : tensor<2048xf32>, tensor<100x2048xf32>
}
