func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %mb = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %s = stablehlo.subtract %x, %mb : tensor<1024x1024xf32>
  %e = stablehlo.exponential %s : tensor<1024x1024xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %sb = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %y = stablehlo.divide %e, %sb : tensor<1024x1024xf32>
  return %y : tensor<1024x1024xf32>
}
