// Ops on constants become constants while these are small; a splat stays a splat;
// branches and loops with a known path are taken.
// RUN: tenon opt %s --passes=constant-fold,dce | FileCheck %s

// CHECK-LABEL: func.func @small(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<[11, 22, 33]> : s32[3]}
// CHECK-NEXT: %[[S:[0-9]+]] = stablehlo.constant() {value = dense<66> : s32[]}
// CHECK-NEXT: stablehlo.return(%[[C]], %[[S]])
func.func @small() -> (tensor<3xi32>, tensor<i32>) {
  %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %b = stablehlo.constant dense<[10, 20, 30]> : tensor<3xi32>
  %s = stablehlo.add %a, %b : tensor<3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
  return %s, %r : tensor<3xi32>, tensor<i32>
}

// As in the evaluator: division by zero, wrapping, the sign of a zero.
// CHECK-LABEL: func.func @exact(
// CHECK-NEXT: stablehlo.constant() {value = dense<-1> : s32[]}
// CHECK-NEXT: stablehlo.constant() {value = dense<-2147483648> : s32[]}
// CHECK-NEXT: stablehlo.constant() {value = dense<-0.0> : f32[]}
// CHECK-NEXT: stablehlo.constant() {value = dense<0.33333334> : f32[]}
func.func @exact() -> (tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %q = stablehlo.divide %one, %zero : tensor<i32>
  %top = stablehlo.constant dense<2147483647> : tensor<i32>
  %w = stablehlo.add %top, %one : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %f : tensor<f32>
  %a = stablehlo.constant dense<1.0> : tensor<f32>
  %b = stablehlo.constant dense<3.0> : tensor<f32>
  %t = stablehlo.divide %a, %b : tensor<f32>
  return %q, %w, %n, %t : tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>
}

// A large splat stays a splat.
// CHECK-LABEL: func.func @splat(
// CHECK-NEXT: %[[A:[0-9]+]] = stablehlo.constant() {value = dense<2.0> : f32[1000,1000]}
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.constant() {value = dense<0.5> : f32[500,2]}
// CHECK-NEXT: stablehlo.return(%[[A]], %[[R]])
func.func @splat() -> (tensor<1000x1000xf32>, tensor<500x2xf32>) {
  %k = stablehlo.constant dense<0.5> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> tensor<1000x1000xf32>
  %four = stablehlo.constant dense<4.0> : tensor<1000x1000xf32>
  %m = stablehlo.multiply %b, %four : tensor<1000x1000xf32>
  %s = stablehlo.slice %b [0:1, 0:1000] : (tensor<1000x1000xf32>) -> tensor<1x1000xf32>
  %r = stablehlo.reshape %s : (tensor<1x1000xf32>) -> tensor<500x2xf32>
  return %m, %r : tensor<1000x1000xf32>, tensor<500x2xf32>
}

// Small constants do not become a large one, an iota does not become an array, and a constant with other users
// is not duplicated.
// CHECK-LABEL: func.func @large(
// CHECK: stablehlo.broadcast_in_dim
// CHECK: stablehlo.iota
// CHECK: stablehlo.concatenate
func.func @large() -> (tensor<3x1000xi32>, tensor<16xi32>, tensor<2000xi32>) {
  %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %b = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<3xi32>) -> tensor<3x1000xi32>
  %i = stablehlo.iota dim = 0 : tensor<16xi32>
  %x = stablehlo.constant dense<1> : tensor<1000xi32>
  %y = stablehlo.constant dense<2> : tensor<1000xi32>
  %c = stablehlo.concatenate %x, %y, dim = 0 : (tensor<1000xi32>, tensor<1000xi32>) -> tensor<2000xi32>
  return %b, %i, %c : tensor<3x1000xi32>, tensor<16xi32>, tensor<2000xi32>
}

// CHECK-LABEL: func.func @control(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.cosine(%arg0)
// CHECK-NEXT: %[[T:[0-9]+]] = stablehlo.tanh(%[[C]])
// CHECK-NEXT: stablehlo.return(%[[T]])
func.func @control(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = stablehlo.constant dense<false> : tensor<i1>
  %a = "stablehlo.if"(%p) ({
    %s = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }, {
    %c = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %c : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %index = stablehlo.constant dense<7> : tensor<i32>
  %b = "stablehlo.case"(%index) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    %t = stablehlo.tanh %a : tensor<4xf32>
    stablehlo.return %t : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %three, %v = %b) : tensor<i32>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %q = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %q : tensor<i1>
  } do {
    %w = stablehlo.negate %v : tensor<4xf32>
    stablehlo.return %i, %w : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// An empty array needs no computation.
// CHECK-LABEL: func.func @empty(
// CHECK-NEXT: %[[N:[0-9]+]] = stablehlo.constant() {value = dense<> : f32[0,4]}
// CHECK-NEXT: stablehlo.return(%[[N]])
func.func @empty(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %s = stablehlo.sine %x : tensor<0x4xf32>
  return %s : tensor<0x4xf32>
}

// A large constant that nothing else uses is transposed once.
// CHECK-LABEL: func.func @transposed(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<{{\[\[}}1, 4], [2, 5], [3, 6]]> : s32[3,2]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @transposed() -> tensor<3x2xi32> {
  %c = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %r = stablehlo.transpose %c, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return %r : tensor<3x2xi32>
}
