// What loops compute of values that do not change is computed before them; scalars, and arrays larger
// than what they are computed of, stay.
// RUN: tenon opt %s --passes=hoist-invariants,dce | FileCheck %s

// CHECK-LABEL: func.func @looked_up(
// CHECK: %[[S:[0-9]+]] = stablehlo.sine(%arg0)
// CHECK: stablehlo.while
// CHECK-NOT: stablehlo.sine
// CHECK: stablehlo.dynamic_slice(%[[S]],
func.func @looked_up(%t: tensor<1000xf32>, %n: tensor<i32>) -> tensor<1xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<1xf32>
  %r:2 = stablehlo.while(%i = %zero, %s = %none) : tensor<i32>, tensor<1xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %sin = stablehlo.sine %t : tensor<1000xf32>
    %v = stablehlo.dynamic_slice %sin, %i, sizes = [1] : (tensor<1000xf32>, tensor<i32>) -> tensor<1xf32>
    %s1 = stablehlo.add %s, %v : tensor<1xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %s1 : tensor<i32>, tensor<1xf32>
  }
  return %r#1 : tensor<1xf32>
}

// The largest of each column and its broadcast move with the difference; the broadcast that the turn's own
// op reads is there once more. From the inner loop through the outer one.
// CHECK-LABEL: func.func @normalized(
// CHECK: %[[M:[0-9]+]] = stablehlo.reduce(%arg0,
// CHECK: %[[B:[0-9]+]] = stablehlo.broadcast_in_dim(%[[M]])
// CHECK: %[[D:[0-9]+]] = stablehlo.subtract(%arg0, %[[B]])
// CHECK: stablehlo.while
// CHECK: stablehlo.while
// CHECK-NOT: stablehlo.subtract
// CHECK: stablehlo.broadcast_in_dim(%[[M]])
// CHECK: stablehlo.multiply(
// CHECK: stablehlo.return
func.func @normalized(%w: tensor<64x512xf32>, %x: tensor<64x512xf32>, %n: tensor<i32>) -> tensor<64x512xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %least = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<64x512xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %q:2 = stablehlo.while(%j = %zero, %b = %a) : tensor<i32>, tensor<64x512xf32>
    cond {
      %p = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %m = stablehlo.reduce(%w init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<64x512xf32>, tensor<f32>) -> tensor<512xf32>
      %wide = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<512xf32>) -> tensor<64x512xf32>
      %d = stablehlo.subtract %w, %wide : tensor<64x512xf32>
      %y = stablehlo.multiply %b, %wide : tensor<64x512xf32>
      %b1 = stablehlo.add %y, %d : tensor<64x512xf32>
      %j1 = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %j1, %b1 : tensor<i32>, tensor<64x512xf32>
    }
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %q#1 : tensor<i32>, tensor<64x512xf32>
  }
  return %r#1 : tensor<64x512xf32>
}

// A sum of all pairs takes more memory than the two rows; scalars stay.
// CHECK-LABEL: func.func @pairs(
// CHECK: stablehlo.while
// CHECK: stablehlo.broadcast_in_dim
// CHECK: stablehlo.negate
// CHECK: stablehlo.broadcast_in_dim
// CHECK: stablehlo.broadcast_in_dim
// CHECK: stablehlo.add
func.func @pairs(%u: tensor<512xf32>, %v: tensor<512xf32>, %k: tensor<f32>, %x: tensor<512x512xf32>, %n: tensor<i32>) -> tensor<512x512xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<512x512xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %scale = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %minus = stablehlo.negate %k : tensor<f32>
    %move = stablehlo.broadcast_in_dim %minus, dims = [] : (tensor<f32>) -> tensor<512x512xf32>
    %down = stablehlo.broadcast_in_dim %u, dims = [0] : (tensor<512xf32>) -> tensor<512x512xf32>
    %across = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<512xf32>) -> tensor<512x512xf32>
    %sum = stablehlo.add %down, %across : tensor<512x512xf32>
    %y = stablehlo.multiply %a, %sum : tensor<512x512xf32>
    %z = stablehlo.multiply %y, %scale : tensor<512x512xf32>
    %a1 = stablehlo.add %z, %move : tensor<512x512xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %a1 : tensor<i32>, tensor<512x512xf32>
  }
  return %r#1 : tensor<512x512xf32>
}
