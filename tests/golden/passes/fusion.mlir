// Elementwise ops are fused with each other, with the reduction that reads them, and along
// rows; ops that would be computed twice, or must run in between, are not fused.
// RUN: tenon opt %s --passes=fusion | FileCheck %s

// Ops that only move elements are fused with their readers.
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

// Softmax: both reductions and all other ops.
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

// A reduction over columns is fused with ops that only it reads; if ops have other readers, only their result is used.
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

// The sort is in between: one kernel cannot run both before and after it.
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

// Sums of rows along the columns are not fused: each would be computed again for each element.
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

// A sum of very many elements is computed by many workgroups, before the ops that need it.
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

// The means leave a layer norm's kernel with one number per row; the shape in which other ops read them is a
// view.
// CHECK-LABEL: func.func @norm_and_means
// CHECK: %[[F:[0-9]+]]:2 = tenon.fusion(%arg{{[0-9]+}}) {fusion_kind = "rows"}
// CHECK: stablehlo.reduce
// CHECK: %[[M:[0-9]+]] = stablehlo.divide
// CHECK: %[[R:[0-9]+]] = stablehlo.reshape(%[[M]]) : f32[4]
// CHECK: stablehlo.subtract
// CHECK: }) : f32[4], f32[4,8]
// CHECK-NEXT: %[[V:[0-9]+]] = stablehlo.reshape(%[[F]]#0) : f32[4,1]
// CHECK-NEXT: stablehlo.return(%[[F]]#1, %[[V]])
func.func @norm_and_means(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<8.0> : tensor<4x1xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = stablehlo.divide %1, %n : tensor<4x1xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<4x8xf32>
  %5 = stablehlo.multiply %4, %4 : tensor<4x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = stablehlo.rsqrt %6 : tensor<4xf32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %9 = stablehlo.multiply %4, %8 : tensor<4x8xf32>
  return %9, %2 : tensor<4x8xf32>, tensor<4x1xf32>
}

// A slice with two readers is read by each kernel in place, unless the sliced array is updated
// afterwards: then the slice is read first.
// CHECK-LABEL: func.func @slices
// CHECK: %[[T:[0-9]+]] = stablehlo.dynamic_slice(%arg1
// CHECK-NOT: = stablehlo.slice(
// CHECK: tenon.fusion
// CHECK: stablehlo.slice(%{{arg[0-9]+}})
// CHECK: tenon.fusion
// CHECK: stablehlo.slice(%{{arg[0-9]+}})
func.func @slices(%x: tensor<10x8xf32>, %y: tensor<10x8xf32>, %i: tensor<i32>, %v: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<10x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.slice %x [2:6, 0:8] : (tensor<10x8xf32>) -> tensor<4x8xf32>
  %t = stablehlo.dynamic_slice %y, %i, %i, sizes = [4, 8] : (tensor<10x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %0 = stablehlo.add %s, %t : tensor<4x8xf32>
  %1 = stablehlo.sine %0 : tensor<4x8xf32>
  %2 = stablehlo.multiply %s, %s : tensor<4x8xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %u = stablehlo.dynamic_update_slice %y, %v, %i, %i : (tensor<10x8xf32>, tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<10x8xf32>
  return %1, %3, %u : tensor<4x8xf32>, tensor<8xf32>, tensor<10x8xf32>
}

// Arrays with unknown sizes are never fused, because lowering does not support them.
// CHECK-LABEL: func.func @unknown(
// CHECK-NOT: tenon.fusion
// CHECK: stablehlo.return
func.func @unknown(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.abs %x : tensor<?x4xf32>
  %1 = stablehlo.remainder %0, %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// A rotation: the slices and their concatenation are fused with the op that reads it.
// CHECK-LABEL: func.func @rotated
// CHECK-NEXT: tenon.fusion(%arg{{[0-9]+}}) {fusion_kind = "elements"}
// CHECK: stablehlo.slice
// CHECK: stablehlo.slice
// CHECK: stablehlo.concatenate
// CHECK: stablehlo.add
// CHECK: }) : f32[4,8]
// CHECK-NEXT: stablehlo.return
func.func @rotated(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.slice %x [0:4, 7:8] : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = stablehlo.slice %x [0:4, 0:7] : (tensor<4x8xf32>) -> tensor<4x7xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x1xf32>, tensor<4x7xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.add %x, %2 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// A part of a concatenation that the group computes is not computed again at another index.
// CHECK-LABEL: func.func @rotated_result
// CHECK-NEXT: stablehlo.sine
// CHECK: stablehlo.concatenate
// CHECK: stablehlo.add
func.func @rotated_result(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  %1 = stablehlo.slice %0 [7:8] : (tensor<8xf32>) -> tensor<1xf32>
  %2 = stablehlo.slice %0 [0:7] : (tensor<8xf32>) -> tensor<7xf32>
  %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xf32>, tensor<7xf32>) -> tensor<8xf32>
  %4 = stablehlo.add %0, %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// Slices of an array are read by the ops that compute its update, which waits for them.
// CHECK-LABEL: func.func @updated_by_its_slices
// CHECK: tenon.fusion(%arg{{[0-9]+}}) {fusion_kind = "elements"}
// CHECK: stablehlo.slice
// CHECK: stablehlo.slice
// CHECK: stablehlo.add
// CHECK: }) : f32[6]
// CHECK: stablehlo.dynamic_update_slice
func.func @updated_by_its_slices(%x: tensor<8xf32>, %i: tensor<i32>) -> tensor<8xf32> {
  %0 = stablehlo.slice %x [0:6] : (tensor<8xf32>) -> tensor<6xf32>
  %1 = stablehlo.slice %x [2:8] : (tensor<8xf32>) -> tensor<6xf32>
  %2 = stablehlo.add %0, %1 : tensor<6xf32>
  %3 = stablehlo.dynamic_update_slice %x, %2, %i : (tensor<8xf32>, tensor<6xf32>, tensor<i32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// A slice that another op reads is copied before the update.
// CHECK-LABEL: func.func @updated_beside_its_slice
// CHECK: stablehlo.slice
// CHECK-NOT: tenon.fusion
// CHECK: stablehlo.return
func.func @updated_beside_its_slice(%x: tensor<8xf32>, %y: tensor<2xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<2xf32>) {
  %0 = stablehlo.slice %x [0:2] : (tensor<8xf32>) -> tensor<2xf32>
  %1 = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
  %2 = stablehlo.negate %0 : tensor<2xf32>
  return %1, %2 : tensor<8xf32>, tensor<2xf32>
}

// A gather with the ops that compute its indices and the one that reads it, but without its table.
// CHECK-LABEL: func.func @gathered
// CHECK: stablehlo.negate
// CHECK: tenon.fusion(
// CHECK: stablehlo.add
// CHECK: stablehlo.gather
// CHECK: stablehlo.multiply
// CHECK: }) : f32[5]
// CHECK-NEXT: stablehlo.return
func.func @gathered(%t: tensor<9xf32>, %i: tensor<5xi32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %0 = stablehlo.negate %t : tensor<9xf32>
  %1 = stablehlo.add %i, %i : tensor<5xi32>
  %2 = stablehlo.reshape %1 : (tensor<5xi32>) -> tensor<5x1xi32>
  %3 = "stablehlo.gather"(%0, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<5x1xi32>) -> tensor<5xf32>
  %4 = stablehlo.multiply %3, %y : tensor<5xf32>
  return %4 : tensor<5xf32>
}
