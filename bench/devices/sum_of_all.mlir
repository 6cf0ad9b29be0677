func.func @main(%x: tensor<4194304xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4194304xf32>, tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
