// Loops carry only values that change and are needed, each once; branches return only used values.
// RUN: tenon opt %s --passes=loop-carries,dce | FileCheck %s

// The bound is invariant, the second counter equals the first, and the sum is unused.
// CHECK-LABEL: func.func @loop(
// CHECK: %[[Z:[0-9]+]] = stablehlo.constant() {value = dense<0>
// CHECK: %[[R:[0-9]+]]:2 = stablehlo.while(%[[Z]], %arg0) ({
// CHECK-NEXT: ^bb0(%[[I:arg[0-9]+]]: s32[], %{{arg[0-9]+}}: f32[4]):
// CHECK-NEXT: stablehlo.compare(%[[I]], %arg1)
// CHECK: ^bb0(%[[J:arg[0-9]+]]: s32[], %[[X:arg[0-9]+]]: f32[4]):
// CHECK-NEXT: %[[ONE:[0-9]+]] = stablehlo.constant
// CHECK-NEXT: %[[N:[0-9]+]] = stablehlo.add(%[[J]], %[[ONE]])
// CHECK-NEXT: %[[F:[0-9]+]] = stablehlo.convert(%[[J]])
// CHECK-NEXT: %[[B:[0-9]+]] = stablehlo.broadcast_in_dim(%[[F]])
// CHECK-NEXT: %[[Y:[0-9]+]] = stablehlo.multiply(%[[X]], %[[B]])
// CHECK-NEXT: stablehlo.return(%[[N]], %[[Y]])
// CHECK-NEXT: }) : s32[], f32[4]
// CHECK-NEXT: stablehlo.return(%[[R]]#1, %[[R]]#0, %arg1)
func.func @loop(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<4xf32>
  %r:5 = stablehlo.while(%i = %zero, %j = %zero, %m = %n, %s = %none, %v = %x) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    %f = stablehlo.convert %j : (tensor<i32>) -> tensor<f32>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %w = stablehlo.multiply %v, %b : tensor<4xf32>
    %t = stablehlo.add %s, %w : tensor<4xf32>
    stablehlo.return %i1, %j1, %m, %t, %w : tensor<i32>, tensor<i32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#4, %r#1, %r#2 : tensor<4xf32>, tensor<i32>, tensor<i32>
}

// Two values that only need each other are removed; one that an effect needs stays.
// CHECK-LABEL: func.func @cycle(
// CHECK: stablehlo.while(%{{[0-9]+}}, %arg0)
// CHECK-NOT: stablehlo.sine
// CHECK: stablehlo.custom_call(%[[V:arg[0-9]+]]) {call_target_name = "log"
// CHECK: stablehlo.negate(%[[V]])
func.func @cycle(%x: tensor<4xf32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:4 = stablehlo.while(%i = %zero, %a = %x, %b = %x, %v = %x) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    %c = stablehlo.sine %b : tensor<4xf32>
    %d = stablehlo.cosine %a : tensor<4xf32>
    stablehlo.custom_call @log(%v) {has_side_effect = true} : (tensor<4xf32>) -> ()
    %w = stablehlo.negate %v : tensor<4xf32>
    stablehlo.return %i1, %c, %d, %w : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<i32>
}

// CHECK-LABEL: func.func @branch(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.if(%arg1) ({
// CHECK-NEXT: stablehlo.sine
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return(%arg0)
// CHECK-NEXT: }) : f32[4]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @branch(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %r:2 = "stablehlo.if"(%p) ({
    %s = stablehlo.sine %x : tensor<4xf32>
    %c = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %c, %s : tensor<4xf32>, tensor<4xf32>
  }, {
    stablehlo.return %x, %x : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#1 : tensor<4xf32>
}

// If both branches return the same outside value, that value replaces the result.
// CHECK-LABEL: func.func @alike(
// CHECK-NOT: stablehlo.if
// CHECK: stablehlo.return(%arg0)
func.func @alike(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %r = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Two counters with equal initial values that become the same sum are merged.
// CHECK-LABEL: func.func @same_next(
// CHECK: stablehlo.while(%{{[0-9]+}}) ({
// CHECK: %[[S:[0-9]+]] = stablehlo.add
// CHECK-NEXT: stablehlo.return(%[[S]])
// CHECK-NEXT: }) : s32[]
func.func @same_next(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %j = %zero) : tensor<i32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %i1 : tensor<i32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}
