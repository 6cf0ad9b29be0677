func.func @main(%x: tensor<64x50257xf32>) -> (tensor<64x40xf32>, tensor<64x40xi32>) {
  %v, %i = chlo.top_k(%x, k = 40) : tensor<64x50257xf32> -> (tensor<64x40xf32>, tensor<64x40xi32>)
  return %v, %i : tensor<64x40xf32>, tensor<64x40xi32>
}
