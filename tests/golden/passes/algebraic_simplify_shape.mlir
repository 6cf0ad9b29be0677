// The rules of ops that move elements, and of tuples and complex numbers, one function each.
// RUN: tenon opt %s --passes=algebraic-simplify,dce | FileCheck %s

// CHECK-LABEL: func.func @transpose_nothing(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @transpose_nothing(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.transpose %x, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @transpose_twice(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.transpose(%arg0) {permutation = [2, 0, 1]} : f32[4,2,3]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @transpose_twice(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %a = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %r = stablehlo.transpose %a, dims = [2, 1, 0] : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @reshape_nothing(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @reshape_nothing(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @reshape_twice(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.reshape(%arg0) : f32[3,2]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @reshape_twice(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %a = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  %r = stablehlo.reshape %a : (tensor<6xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @broadcast_nothing(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @broadcast_nothing(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @broadcast_twice(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.broadcast_in_dim(%arg0) {broadcast_dimensions = [2]} : f32[4,2,3]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @broadcast_twice(%x: tensor<3xf32>) -> tensor<4x2x3xf32> {
  %a = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %r = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @slice_nothing(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @slice_nothing(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = stablehlo.slice %x [0:5] : (tensor<5xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @slice_twice(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.slice(%arg0) {limit_indices = [17], start_indices = [4], strides = [6]} : f32[3]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @slice_twice(%x: tensor<20xf32>) -> tensor<3xf32> {
  %a = stablehlo.slice %x [2:18:2] : (tensor<20xf32>) -> tensor<8xf32>
  %r = stablehlo.slice %a [1:8:3] : (tensor<8xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// CHECK-LABEL: func.func @slice_empty(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.slice(%arg0) {limit_indices = [0], start_indices = [0], strides = [1]} : f32[0]
func.func @slice_empty(%x: tensor<10xf32>) -> tensor<0xf32> {
  %a = stablehlo.slice %x [0:10:3] : (tensor<10xf32>) -> tensor<4xf32>
  %r = stablehlo.slice %a [4:4] : (tensor<4xf32>) -> tensor<0xf32>
  return %r : tensor<0xf32>
}

// CHECK-LABEL: func.func @pad_nothing(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @pad_nothing(%x: tensor<5xf32>, %p: tensor<f32>) -> tensor<5xf32> {
  %r = stablehlo.pad %x, %p, low = [0], high = [0], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @concatenate_one(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @concatenate_one(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = stablehlo.concatenate %x, dim = 0 : (tensor<5xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @concatenate_empty(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.concatenate(%arg0, %arg2)
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @concatenate_empty(%x: tensor<5xf32>, %e: tensor<0xf32>, %y: tensor<2xf32>) -> tensor<7xf32> {
  %r = stablehlo.concatenate %x, %e, %y, dim = 0 : (tensor<5xf32>, tensor<0xf32>, tensor<2xf32>) -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// CHECK-LABEL: func.func @dynamic_slice_whole(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @dynamic_slice_whole(%x: tensor<5xf32>, %i: tensor<i32>) -> tensor<5xf32> {
  %r = stablehlo.dynamic_slice %x, %i, sizes = [5] : (tensor<5xf32>, tensor<i32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @dynamic_slice_known(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.slice(%arg0) {limit_indices = [5], start_indices = [3], strides = [1]} : f32[2]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @dynamic_slice_known(%x: tensor<5xf32>) -> tensor<2xf32> {
  %i = stablehlo.constant dense<9> : tensor<i32>
  %r = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// CHECK-LABEL: func.func @dynamic_slice_huge(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.slice(%arg0) {limit_indices = [5], start_indices = [3], strides = [1]} : f32[2]
func.func @dynamic_slice_huge(%x: tensor<5xf32>) -> tensor<2xf32> {
  %i = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
  %r = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<5xf32>, tensor<ui64>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// CHECK-LABEL: func.func @update_whole(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @update_whole(%y: tensor<5xf32>, %x: tensor<5xf32>, %i: tensor<i32>) -> tensor<5xf32> {
  %r = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @reverse_nothing(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @reverse_nothing(%x: tensor<1x5xf32>) -> tensor<1x5xf32> {
  %r = stablehlo.reverse %x, dims = [0] : tensor<1x5xf32>
  return %r : tensor<1x5xf32>
}

// CHECK-LABEL: func.func @reverse_twice(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @reverse_twice(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %a = stablehlo.reverse %x, dims = [0, 1] : tensor<2x5xf32>
  %r = stablehlo.reverse %a, dims = [1, 0] : tensor<2x5xf32>
  return %r : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @tuple_element(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @tuple_element(%x: tensor<5xf32>, %y: tensor<2xf32>) -> tensor<5xf32> {
  %t = stablehlo.tuple %x, %y : tuple<tensor<5xf32>, tensor<2xf32>>
  %r = stablehlo.get_tuple_element %t[0] : (tuple<tensor<5xf32>, tensor<2xf32>>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @real_of_complex(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @real_of_complex(%x: tensor<5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %z = stablehlo.complex %x, %y : tensor<5xcomplex<f32>>
  %r = stablehlo.real %z : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @imag_of_complex(
// CHECK-NEXT: stablehlo.return(%arg1)
func.func @imag_of_complex(%x: tensor<5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %z = stablehlo.complex %x, %y : tensor<5xcomplex<f32>>
  %r = stablehlo.imag %z : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: func.func @complex_of_parts(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @complex_of_parts(%z: tensor<5xcomplex<f32>>) -> tensor<5xcomplex<f32>> {
  %a = stablehlo.real %z : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
  %b = stablehlo.imag %z : (tensor<5xcomplex<f32>>) -> tensor<5xf32>
  %r = stablehlo.complex %a, %b : tensor<5xcomplex<f32>>
  return %r : tensor<5xcomplex<f32>>
}

// CHECK-LABEL: func.func @dot_of_transposed_x(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.dot_general(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : f32[2,5]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @dot_of_transposed_x(%x: tensor<3x2xf32>, %y: tensor<3x5xf32>) -> tensor<2x5xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %r = stablehlo.dot_general %t, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return %r : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @dot_of_transposed_y(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.dot_general(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>} : f32[4,2,5]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @dot_of_transposed_y(%x: tensor<4x2x3xf32>, %y: tensor<5x4x3xf32>) -> tensor<4x2x5xf32> {
  %t = stablehlo.transpose %y, dims = [1, 2, 0] : (tensor<5x4x3xf32>) -> tensor<4x3x5xf32>
  %r = stablehlo.dot_general %x, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
  return %r : tensor<4x2x5xf32>
}

// The free dimensions would change their order.
// CHECK-LABEL: func.func @dot_of_other_order(
// CHECK-NEXT: stablehlo.transpose
func.func @dot_of_other_order(%x: tensor<3x2x4xf32>, %y: tensor<3x5xf32>) -> tensor<4x2x5xf32> {
  %t = stablehlo.transpose %x, dims = [2, 1, 0] : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>
  %r = stablehlo.dot_general %t, %y, contracting_dims = [2] x [0] : (tensor<4x2x3xf32>, tensor<3x5xf32>) -> tensor<4x2x5xf32>
  return %r : tensor<4x2x5xf32>
}

// Few of the rows would lie side by side.
// CHECK-LABEL: func.func @dot_of_rows_apart(
// CHECK-NEXT: stablehlo.transpose
func.func @dot_of_rows_apart(%x: tensor<7x3x2xf32>, %y: tensor<3x5xf32>) -> tensor<7x2x5xf32> {
  %t = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<7x3x2xf32>) -> tensor<7x2x3xf32>
  %r = stablehlo.dot_general %t, %y, contracting_dims = [2] x [0] : (tensor<7x2x3xf32>, tensor<3x5xf32>) -> tensor<7x2x5xf32>
  return %r : tensor<7x2x5xf32>
}

// CHECK-LABEL: func.func @dot_of_many_rows_apart(
// CHECK-NEXT: stablehlo.dot_general(%arg0, %arg1)
func.func @dot_of_many_rows_apart(%x: tensor<7x3x64xf32>, %y: tensor<3x5xf32>) -> tensor<7x64x5xf32> {
  %t = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<7x3x64xf32>) -> tensor<7x64x3xf32>
  %r = stablehlo.dot_general %t, %y, contracting_dims = [2] x [0] : (tensor<7x64x3xf32>, tensor<3x5xf32>) -> tensor<7x64x5xf32>
  return %r : tensor<7x64x5xf32>
}

// The parts of complex products would be added in another order.
// CHECK-LABEL: func.func @transpose_of_complex_dot(
// CHECK-NEXT: stablehlo.dot_general
// CHECK-NEXT: stablehlo.transpose
func.func @transpose_of_complex_dot(%x: tensor<2x3xcomplex<f32>>, %y: tensor<3x5xcomplex<f32>>) -> tensor<5x2xcomplex<f32>> {
  %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xcomplex<f32>>, tensor<3x5xcomplex<f32>>) -> tensor<2x5xcomplex<f32>>
  %r = stablehlo.transpose %d, dims = [1, 0] : (tensor<2x5xcomplex<f32>>) -> tensor<5x2xcomplex<f32>>
  return %r : tensor<5x2xcomplex<f32>>
}

// CHECK-LABEL: func.func @transpose_of_dot(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.dot_general(%arg1, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>} : f32[5,2]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @transpose_of_dot(%x: tensor<2x3xf32>, %y: tensor<3x5xf32>) -> tensor<5x2xf32> {
  %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  %r = stablehlo.transpose %d, dims = [1, 0] : (tensor<2x5xf32>) -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}

// CHECK-LABEL: func.func @dot_of_vector(
// CHECK-NEXT: %[[D:[0-9]+]] = stablehlo.dot_general(%arg1, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : f32[5,1]
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.reshape(%[[D]]) : f32[1,5]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @dot_of_vector(%x: tensor<1x3xf32>, %y: tensor<5x3xf32>) -> tensor<1x5xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<1x3xf32>, tensor<5x3xf32>) -> tensor<1x5xf32>
  return %r : tensor<1x5xf32>
}

// CHECK-LABEL: func.func @scatter_counted(
// CHECK: %[[R:[0-9]+]] = stablehlo.pad(%arg0, %{{[0-9]+}}) {edge_padding_high = [2], edge_padding_low = [1], interior_padding = [1]} : f32[8]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @scatter_counted(%y: tensor<3xf32>) -> tensor<8xf32> {
  %x = stablehlo.constant dense<0.0> : tensor<8xf32>
  %i = stablehlo.iota dim = 0 : tensor<3xi32>
  %two = stablehlo.constant dense<2> : tensor<3xi32>
  %one = stablehlo.constant dense<1> : tensor<3xi32>
  %m = stablehlo.multiply %two, %i : tensor<3xi32>
  %a = stablehlo.add %one, %m : tensor<3xi32>
  %p = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
  %r = "stablehlo.scatter"(%x, %p, %y) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
    stablehlo.return %v : tensor<f32>
  }) : (tensor<8xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// One place is beyond the end.
// CHECK-LABEL: func.func @scatter_beyond(
// CHECK: stablehlo.scatter
func.func @scatter_beyond(%y: tensor<3xf32>) -> tensor<4xf32> {
  %x = stablehlo.constant dense<0.0> : tensor<4xf32>
  %i = stablehlo.iota dim = 0 : tensor<3xi32>
  %two = stablehlo.constant dense<2> : tensor<3xi32>
  %m = stablehlo.multiply %two, %i : tensor<3xi32>
  %p = stablehlo.reshape %m : (tensor<3xi32>) -> tensor<3x1xi32>
  %r = "stablehlo.scatter"(%x, %p, %y) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
    stablehlo.return %v : tensor<f32>
  }) : (tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
