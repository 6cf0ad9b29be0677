// Reductions and contractions. Sums of floats are compared within a tolerance, because the target decides how they are split.
// ----- reduce, sum of integers
// args: 0=random:1
func.func @main(%x: tensor<50x30xi32>) -> tensor<50xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<50x30xi32>, tensor<i32>) -> tensor<50xi32>
  return %0 : tensor<50xi32>
}
// ----- reduce, to one
// args: 0=random:1
func.func @main(%x: tensor<70x30xi32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<70x30xi32>, tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}
// ----- reduce, largest
// args: 0=random:1
func.func @main(%x: tensor<50x30xf32>) -> tensor<30xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0] : (tensor<50x30xf32>, tensor<f32>) -> tensor<30xf32>
  return %0 : tensor<30xf32>
}
// ----- reduce, sum of floats
// args: 0=random:1
// tolerance: 1e-5
func.func @main(%x: tensor<50x30xf32>) -> tensor<50xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<50x30xf32>, tensor<f32>) -> tensor<50xf32>
  return %0 : tensor<50xf32>
}
// ----- softmax
// args: 0=random:1
// tolerance: 1e-5
func.func @main(%x: tensor<8x30xf32>) -> tensor<8x30xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x30xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x30xf32>
  %c = stablehlo.subtract %x, %mb : tensor<8x30xf32>
  %e = stablehlo.exponential %c : tensor<8x30xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x30xf32>, tensor<f32>) -> tensor<8xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> tensor<8x30xf32>
  %0 = stablehlo.divide %e, %sb : tensor<8x30xf32>
  return %0 : tensor<8x30xf32>
}
// ----- reduce_window
// args: 0=random:1
func.func @main(%x: tensor<8x9xi32>) -> tensor<4x8xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>} : (tensor<8x9xi32>, tensor<i32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}
// ----- select_and_scatter
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<8x8xi32>, %s: tensor<4x4xi32>) -> tensor<8x8xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>} : (tensor<8x8xi32>, tensor<4x4xi32>, tensor<i32>) -> tensor<8x8xi32>
  return %0 : tensor<8x8xi32>
}
// ----- cumulative sum
// args: 0=random:1
func.func @main(%x: tensor<3x40xi32>) -> tensor<3x40xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) {window_dimensions = array<i64: 1, 40>, padding = dense<[[0, 0], [39, 0]]> : tensor<2x2xi64>} : (tensor<3x40xi32>, tensor<i32>) -> tensor<3x40xi32>
  return %0 : tensor<3x40xi32>
}
// ----- dot_general of integers
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<2x17x33xi8>, %y: tensor<2x33x9xi8>) -> tensor<2x17x9xi32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x17x33xi8>, tensor<2x33x9xi8>) -> tensor<2x17x9xi32>
  return %0 : tensor<2x17x9xi32>
}
// ----- dot_general of floats
// args: 0=random:1 1=random:2
// tolerance: 1e-5
func.func @main(%x: tensor<40x70xf32>, %y: tensor<70x50xf32>) -> tensor<40x50xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<40x70xf32>, tensor<70x50xf32>) -> tensor<40x50xf32>
  return %0 : tensor<40x50xf32>
}
// ----- convolution
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<2x8x8x3xi32>, %w: tensor<3x3x3x4xi32>) -> tensor<2x4x4x4xi32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 2], pad = [[1, 0], [1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x8x8x3xi32>, tensor<3x3x3x4xi32>) -> tensor<2x4x4x4xi32>
  return %0 : tensor<2x4x4x4xi32>
}
