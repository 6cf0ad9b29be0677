func.func @main(%x: tensor<2048x2048xf32>) -> tensor<2048xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048x2048xf32>, tensor<f32>) -> tensor<2048xf32>
  return %y : tensor<2048xf32>
}
