// Elementwise ops become one kernel with each other, with the reduction that reads them, and along
// rows; what would be computed twice, or run between, stays out.
// RUN: tenon opt %s --passes=fusion | FileCheck %s

// Ops that only move elements go to whoever reads them.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: tenon.fusion(%arg1, %arg0) {fusion_kind = "elements"}
// CHECK: stablehlo.broadcast_in_dim
// CHECK-NEXT: stablehlo.add
// CHECK-NEXT: stablehlo.sine
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }) : f32[4,8]
// CHECK-NEXT: stablehlo.return
func.func @chain(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
  %2 = stablehlo.sine %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// Softmax: both reductions and all around them.
// CHECK-LABEL: func.func @softmax
// CHECK: tenon.fusion(%arg{{[0-9]+}}) {fusion_kind = "rows"}
// CHECK: stablehlo.maximum
// CHECK: stablehlo.subtract
// CHECK: stablehlo.exponential
// CHECK: stablehlo.reduce
// CHECK: stablehlo.divide
// CHECK: }) : f32[4,8]
// CHECK-NEXT: stablehlo.return
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<4x8xf32>
  %4 = stablehlo.exponential %3 : tensor<4x8xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = stablehlo.reshape %5 : (tensor<4xf32>) -> tensor<4x1xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %8 = stablehlo.divide %4, %7 : tensor<4x8xf32>
  return %8 : tensor<4x8xf32>
}

// A reduction over columns takes what it alone reads; of what others read too, only the result.
// CHECK-LABEL: func.func @columns
// CHECK: tenon.fusion(%arg{{[0-9]+}}) {fusion_kind = "elements"}
// CHECK: stablehlo.multiply
// CHECK: stablehlo.reduce
// CHECK: }) : f32[8]
// CHECK: stablehlo.cosine
// CHECK: stablehlo.reduce
func.func @columns(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.cosine %x : tensor<4x8xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1, %2, %3 : tensor<8xf32>, tensor<4x8xf32>, tensor<8xf32>
}

// The sort stands between: one kernel cannot be before it and behind it.
// CHECK-LABEL: func.func @between
// CHECK-NOT: tenon.fusion
// CHECK: stablehlo.sine
// CHECK: stablehlo.sort
// CHECK: stablehlo.add
func.func @between(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// Sums of rows that go along the columns are no chain: each would be computed for each element.
// CHECK-LABEL: func.func @across
// CHECK: stablehlo.reduce
// CHECK: tenon.fusion(%{{.*}}) {fusion_kind = "elements"}
// CHECK: stablehlo.subtract
func.func @across(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// The sum of very many is computed by many workgroups, before what needs it.
// CHECK-LABEL: func.func @whole
// CHECK: %[[S:.*]] = tenon.fusion(%arg{{[0-9]+}}) {fusion_kind = "elements"}
// CHECK: stablehlo.multiply
// CHECK: stablehlo.reduce
// CHECK: }) : f32[]
// CHECK: tenon.fusion(%[[S]], %arg{{[0-9]+}}) {fusion_kind = "elements"}
// CHECK: stablehlo.divide
func.func @whole(%x: tensor<65536xf32>) -> tensor<65536xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<65536xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<65536xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<65536xf32>
  %3 = stablehlo.divide %x, %2 : tensor<65536xf32>
  return %3 : tensor<65536xf32>
}
