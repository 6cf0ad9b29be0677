// Ops that move, repeat, cut and find elements.
// ----- broadcast_in_dim
// args: 0=random:1
func.func @main(%x: tensor<5xf32>) -> tensor<3x5x2xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<5xf32>) -> tensor<3x5x2xf32>
  return %0 : tensor<3x5x2xf32>
}
// ----- concatenate
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x6xf32>) -> tensor<4x9xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<4x3xf32>, tensor<4x6xf32>) -> tensor<4x9xf32>
  return %0 : tensor<4x9xf32>
}
// ----- dynamic_slice
// args: 0=random:1 1=2 2=9
func.func @main(%x: tensor<6x8xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<3x4xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [3, 4] : (tensor<6x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
// ----- dynamic_update_slice
// args: 0=random:1 1=random:2 2=2 3=-1
func.func @main(%x: tensor<6x8xf32>, %y: tensor<2x3xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<6x8xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %y, %i, %j : (tensor<6x8xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}
// ----- gather
// args: 0=random:1
func.func @main(%x: tensor<6x4xf32>) -> tensor<3x4xf32> {
  %i = stablehlo.constant dense<[[5], [0], [9]]> : tensor<3x1xi32>
  %0 = "stablehlo.gather"(%x, %i) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 4>, indices_are_sorted = false
  } : (tensor<6x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
// ----- scatter
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<6x4xi32>, %u: tensor<3x4xi32>) -> tensor<6x4xi32> {
  %i = stablehlo.constant dense<[[5], [0], [5]]> : tensor<3x1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
    indices_are_sorted = false, unique_indices = false
  } : (tensor<6x4xi32>, tensor<3x1xi32>, tensor<3x4xi32>) -> tensor<6x4xi32>
  return %0 : tensor<6x4xi32>
}
// ----- iota
func.func @main() -> tensor<3x7xi32> {
  %0 = stablehlo.iota dim = 1 : tensor<3x7xi32>
  return %0 : tensor<3x7xi32>
}
// ----- pad
// args: 0=random:1 1=2
func.func @main(%x: tensor<3x4xf32>, %v: tensor<f32>) -> tensor<6x9xf32> {
  %0 = stablehlo.pad %x, %v, low = [1, -1], high = [0, 4], interior = [1, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<6x7xf32>
  %1 = stablehlo.pad %0, %v, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<6x7xf32>, tensor<f32>) -> tensor<6x9xf32>
  return %1 : tensor<6x9xf32>
}
// ----- reshape
// moves
// args: 0=random:1
func.func @main(%x: tensor<4x6xf32>) -> tensor<3x8xf32> {
  %0 = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}
// ----- reverse
// args: 0=random:1
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.reverse %x, dims = [1] : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
// ----- slice
// args: 0=random:1
func.func @main(%x: tensor<9x8xf32>) -> tensor<4x3xf32> {
  %0 = stablehlo.slice %x [1:9:2, 2:5] : (tensor<9x8xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
// ----- sort
// args: 0=random:1
func.func @main(%x: tensor<5x40xf32>) -> tensor<5x40xf32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<5x40xf32>) -> tensor<5x40xf32>
  return %0 : tensor<5x40xf32>
}
// ----- chlo.top_k
// args: 0=random:1
func.func @main(%x: tensor<3x20xf32>) -> (tensor<3x4xf32>, tensor<3x4xi32>) {
  %0:2 = chlo.top_k(%x, k = 4) : tensor<3x20xf32> -> (tensor<3x4xf32>, tensor<3x4xi32>)
  return %0#0, %0#1 : tensor<3x4xf32>, tensor<3x4xi32>
}
// ----- transpose
// args: 0=random:1
func.func @main(%x: tensor<4x6x5xf32>) -> tensor<5x4x6xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<4x6x5xf32>) -> tensor<5x4x6xf32>
  return %0 : tensor<5x4x6xf32>
}
