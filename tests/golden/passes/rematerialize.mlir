// Kernels compute cheap values again instead of reading arrays that others wrote for them.
// RUN: tenon opt %s --passes=fusion | FileCheck %s

// What the gradient of an activation takes of the forward pass follows from the operand, which is an argument, and from the one
// math function: of three arrays one is left, beside the result. The product computes nothing again.
// CHECK-LABEL: @activation
// CHECK: %[[F:[0-9]+]]:2 = tenon.fusion(%arg0) {fusion_kind = "elements"}
// CHECK: stablehlo.tanh(
// CHECK: }) : f32[128,128], f32[128,128]
// CHECK: %[[P:[0-9]+]] = stablehlo.dot_general(%[[F]]#1, %arg1)
// CHECK: tenon.fusion(%arg0, %[[F]]#0, %[[P]]) {fusion_kind = "elements"}
// CHECK-NOT: stablehlo.tanh(
// CHECK: stablehlo.add(
// CHECK: stablehlo.add(
// CHECK-NEXT: stablehlo.return(
func.func @activation(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %half = stablehlo.constant dense<0.5> : tensor<128x128xf32>
  %one = stablehlo.constant dense<1.0> : tensor<128x128xf32>
  %t = stablehlo.tanh %x : tensor<128x128xf32>
  %s = stablehlo.multiply %t, %t : tensor<128x128xf32>
  %a = stablehlo.subtract %one, %s : tensor<128x128xf32>
  %b = stablehlo.multiply %x, %half : tensor<128x128xf32>
  %c = stablehlo.add %t, %one : tensor<128x128xf32>
  %y = stablehlo.multiply %b, %c : tensor<128x128xf32>
  %p = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %d = stablehlo.multiply %p, %a : tensor<128x128xf32>
  %e = stablehlo.multiply %d, %b : tensor<128x128xf32>
  %f = stablehlo.multiply %p, %c : tensor<128x128xf32>
  %g = stablehlo.add %e, %f : tensor<128x128xf32>
  return %p, %g : tensor<128x128xf32>, tensor<128x128xf32>
}

// Sums of rows, repeated along them, are one number a row in memory.
// CHECK-LABEL: @rows
// CHECK: %[[F:[0-9]+]]:3 = tenon.fusion(%arg0) {fusion_kind = "rows"}
// CHECK: }) : f32[128,128], f32[128], f32[128,128]
// CHECK: %[[P:[0-9]+]] = stablehlo.dot_general(%[[F]]#2, %arg1)
// CHECK: tenon.fusion(%[[F]]#1, %[[P]], %[[F]]#0) {fusion_kind = "elements"}
// CHECK: stablehlo.broadcast_in_dim(
func.func @rows(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<128x128xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<128xf32>) -> tensor<128x128xf32>
  %d = stablehlo.divide %e, %b : tensor<128x128xf32>
  %p = stablehlo.dot_general %d, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %q = stablehlo.divide %p, %b : tensor<128x128xf32>
  %r = stablehlo.multiply %q, %e : tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}

// Two sums over different dimensions each compute the differences, which are no array.
// CHECK-LABEL: @differences
// CHECK: %[[A:[0-9]+]] = tenon.fusion(%arg0, %arg1) {fusion_kind = "elements"}
// CHECK: stablehlo.subtract(
// CHECK: %[[B:[0-9]+]] = tenon.fusion(%arg0, %arg1) {fusion_kind = "elements"}
// CHECK: stablehlo.subtract(
// CHECK: stablehlo.return(%[[A]], %[[B]])
func.func @differences(%x: tensor<64x1x32xf32>, %y: tensor<1x64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.broadcast_in_dim %x, dims = [0, 1, 2] : (tensor<64x1x32xf32>) -> tensor<64x64x32xf32>
  %b = stablehlo.broadcast_in_dim %y, dims = [0, 1, 2] : (tensor<1x64x32xf32>) -> tensor<64x64x32xf32>
  %d = stablehlo.subtract %a, %b : tensor<64x64x32xf32>
  %s = stablehlo.multiply %d, %d : tensor<64x64x32xf32>
  %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
  %t = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64x32xf32>, tensor<f32>) -> tensor<64x32xf32>
  return %r, %t : tensor<64x32xf32>, tensor<64x32xf32>
}

// A math function of each element is not computed twice.
// CHECK-LABEL: @math
// CHECK: stablehlo.exponential(
// CHECK-NOT: stablehlo.exponential(
func.func @math(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %e = stablehlo.exponential %x : tensor<128x128xf32>
  %s = stablehlo.add %e, %x : tensor<128x128xf32>
  %p = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = stablehlo.multiply %p, %e : tensor<128x128xf32>
  %q = stablehlo.add %r, %x : tensor<128x128xf32>
  return %q : tensor<128x128xf32>
}

// In a loop what it captures is in memory all the time.
// CHECK-LABEL: @loop
// CHECK: tenon.fusion(%{{.*}}) {fusion_kind = "elements"}
// CHECK: stablehlo.tanh(
// CHECK: }) : f32[128,128], f32[128,128]
// CHECK: stablehlo.dot_general(
// CHECK: tenon.fusion(
// CHECK: stablehlo.subtract(
func.func @loop(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, tensor<128x128xf32>
    cond {
      %n = stablehlo.constant dense<9> : tensor<i32>
      %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %t = stablehlo.tanh %c : tensor<128x128xf32>
      %s = stablehlo.subtract %t, %w : tensor<128x128xf32>
      %y = stablehlo.multiply %s, %c : tensor<128x128xf32>
      %p = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
      %u = stablehlo.multiply %p, %s : tensor<128x128xf32>
      %v = stablehlo.multiply %u, %t : tensor<128x128xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %v : tensor<i32>, tensor<128x128xf32>
    }
  return %r#1 : tensor<128x128xf32>
}

// The memory of a donated argument is written in place: what follows from it is kept.
// CHECK-LABEL: @donated
// CHECK: %[[F:[0-9]+]]:2 = tenon.fusion(%arg0) {fusion_kind = "elements"}
// CHECK: %[[P:[0-9]+]] = stablehlo.dot_general(%[[F]]#1, %arg1)
// CHECK: stablehlo.multiply(%[[P]], %[[F]]#0)
func.func @donated(%x: tensor<128x128xf32> {tf.aliasing_output = 0 : i32}, %w: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %v = stablehlo.add %x, %x : tensor<128x128xf32>
  %t = stablehlo.tanh %v : tensor<128x128xf32>
  %p = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %u = stablehlo.multiply %p, %v : tensor<128x128xf32>
  return %t, %u : tensor<128x128xf32>, tensor<128x128xf32>
}

// Two arguments are not read by each of two groups in place of their sum.
// CHECK-LABEL: @readers
// CHECK: %[[F:[0-9]+]]:2 = tenon.fusion(%arg0, %arg1) {fusion_kind = "elements"}
// CHECK: stablehlo.multiply(%{{[0-9]+}}, %[[F]]#0)
// CHECK: stablehlo.multiply(%{{[0-9]+}}, %[[F]]#0)
func.func @readers(%x: tensor<128x128xf32>, %y: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %v = stablehlo.add %x, %y : tensor<128x128xf32>
  %t = stablehlo.tanh %v : tensor<128x128xf32>
  %p = stablehlo.dot_general %t, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %a = stablehlo.multiply %p, %v : tensor<128x128xf32>
  %q = stablehlo.dot_general %a, %y, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %b = stablehlo.multiply %q, %v : tensor<128x128xf32>
  return %a, %b : tensor<128x128xf32>, tensor<128x128xf32>
}
