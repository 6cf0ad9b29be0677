func.func @main(%x: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %y = stablehlo.transpose %x, dims = [1, 0] : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %y : tensor<2048x2048xf32>
}
