func.func @main(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = "stablehlo.reduce_window"(%x, %zero) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {window_dimensions = array<i64: 1048576>, padding = dense<[[1048575, 0]]> : tensor<1x2xi64>} : (tensor<1048576xf32>, tensor<f32>) -> tensor<1048576xf32>
  return %y : tensor<1048576xf32>
}
