// The softmax of rows, as frameworks write it. Tenon recognizes it, and a device may take it whole.
func.func @main(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<256x512xf32>, tensor<f32>) -> tensor<256xf32>
  %max_b = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<256xf32>) -> tensor<256x512xf32>
  %shifted = stablehlo.subtract %x, %max_b : tensor<256x512xf32>
  %e = stablehlo.exponential %shifted : tensor<256x512xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<256x512xf32>, tensor<f32>) -> tensor<256xf32>
  %sum_b = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<256xf32>) -> tensor<256x512xf32>
  %y = stablehlo.divide %e, %sum_b : tensor<256x512xf32>
  return %y : tensor<256x512xf32>
}
