// An op is replaced by an earlier identical one; branches and loops may use values from outside, regions
// that the host may run separately may not.
// RUN: tenon opt %s --passes=cse | FileCheck %s

// The sides of a sum may be swapped; constants are equal if their bits are: 0.0 is not -0.0.
// CHECK-LABEL: func.func @equal(
// CHECK-NEXT: %[[S:[0-9]+]] = stablehlo.add(%arg0, %arg1)
// CHECK-NEXT: %[[D:[0-9]+]] = stablehlo.subtract(%arg0, %arg1)
// CHECK-NEXT: %[[E:[0-9]+]] = stablehlo.subtract(%arg1, %arg0)
// CHECK-NEXT: %[[Z:[0-9]+]] = stablehlo.constant() {value = dense<0.0> : f32[4]}
// CHECK-NEXT: %[[M:[0-9]+]] = stablehlo.constant() {value = dense<-0.0> : f32[4]}
// CHECK-NEXT: stablehlo.return(%[[S]], %[[S]], %[[D]], %[[E]], %[[Z]], %[[Z]], %[[M]])
func.func @equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.add %x, %y : tensor<4xf32>
  %b = stablehlo.add %y, %x : tensor<4xf32>
  %c = stablehlo.subtract %x, %y : tensor<4xf32>
  %d = stablehlo.subtract %y, %x : tensor<4xf32>
  %e = stablehlo.constant dense<0.0> : tensor<4xf32>
  %f = stablehlo.constant dense<0.0> : tensor<4xf32>
  %g = stablehlo.constant dense<-0.0> : tensor<4xf32>
  return %a, %b, %c, %d, %e, %f, %g : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Attributes and regions must be equal too.
// CHECK-LABEL: func.func @regions(
// CHECK: %[[A:[0-9]+]] = stablehlo.reduce(%arg0, %arg1) {dimensions = [0]}
// CHECK: %[[B:[0-9]+]] = stablehlo.reduce(%arg0, %arg1) {dimensions = [1]}
// CHECK: %[[C:[0-9]+]] = stablehlo.reduce(%arg0, %arg1) {dimensions = [0]}
// CHECK: stablehlo.maximum
// CHECK: stablehlo.return(%[[A]], %[[A]], %[[B]], %[[C]])
func.func @regions(%x: tensor<4x4xf32>, %i: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  %c = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  %d = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @outside(
// CHECK-NEXT: %[[S:[0-9]+]] = stablehlo.sine(%arg0)
// CHECK-NEXT: stablehlo.if(%arg1) ({
// CHECK-NEXT: stablehlo.return(%[[S]])
// CHECK: %[[C:[0-9]+]] = stablehlo.cosine(%arg0)
// CHECK-NEXT: stablehlo.return(%[[C]])
// An op in a branch does not replace one after the conditional.
// CHECK: stablehlo.cosine(%arg0)
func.func @outside(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %s = stablehlo.sine %x : tensor<4xf32>
  %r = "stablehlo.if"(%p) ({
    %t = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %t : tensor<4xf32>
  }, {
    %t = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %t : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %c = stablehlo.cosine %x : tensor<4xf32>
  return %r, %s, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @host(
// CHECK-NEXT: stablehlo.constant() {value = dense<2.0> : f32[]}
// CHECK-NEXT: stablehlo.all_reduce(%arg0)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[TWO:[0-9]+]] = stablehlo.constant() {value = dense<2.0> : f32[]}
// CHECK-NEXT: %[[T:[0-9]+]] = stablehlo.multiply(%{{[a-z0-9]+}}, %[[TWO]])
// CHECK-NEXT: %[[M:[0-9]+]] = stablehlo.maximum(%[[T]], %{{[a-z0-9]+}})
// CHECK-NEXT: stablehlo.return(%[[M]])
func.func @host(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %r = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %k = stablehlo.constant dense<2.0> : tensor<f32>
    %k2 = stablehlo.constant dense<2.0> : tensor<f32>
    %t = stablehlo.multiply %a, %k : tensor<f32>
    %t2 = stablehlo.multiply %a, %k2 : tensor<f32>
    %m = stablehlo.maximum %t2, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<f32>) -> tensor<f32>
  return %r, %two : tensor<f32>, tensor<f32>
}

// Ops with an effect, and ops that draw random numbers, are never merged.
// CHECK-LABEL: func.func @effects(
// CHECK: stablehlo.custom_call
// CHECK: stablehlo.custom_call
// CHECK: stablehlo.rng
// CHECK: stablehlo.rng
func.func @effects(%x: tensor<f32>, %n: tensor<1xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.custom_call @next(%x) : (tensor<f32>) -> tensor<f32>
  %b = stablehlo.custom_call @next(%x) : (tensor<f32>) -> tensor<f32>
  %c = stablehlo.rng %x, %x, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %d = stablehlo.rng %x, %x, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %a, %b, %c, %d : tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
