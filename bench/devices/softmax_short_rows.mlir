func.func @main(%x: tensor<32768x32xf32>) -> tensor<32768x32xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<32768x32xf32>, tensor<f32>) -> tensor<32768xf32>
  %mb = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<32768xf32>) -> tensor<32768x32xf32>
  %s = stablehlo.subtract %x, %mb : tensor<32768x32xf32>
  %e = stablehlo.exponential %s : tensor<32768x32xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32768x32xf32>, tensor<f32>) -> tensor<32768xf32>
  %sb = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<32768xf32>) -> tensor<32768x32xf32>
  %y = stablehlo.divide %e, %sb : tensor<32768x32xf32>
  return %y : tensor<32768x32xf32>
}
