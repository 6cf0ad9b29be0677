func.func @main(%a: tensor<4xf32>, %p: tensor<f32>) -> tensor<2xf32> {
  %d = "stablehlo.reduce_window"(%a, %p) ({
   ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %m = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1>, window_strides = array<i64: 4611686018427387904>, base_dilations = array<i64: 4611686018427387904>, padding = dense<[[0, -9223372036854775807]]> : tensor<1x2xi64>} : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
  return %d : tensor<2xf32>
}
