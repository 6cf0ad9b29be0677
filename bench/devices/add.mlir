func.func @main(%x: tensor<4194304xf32>, %z: tensor<4194304xf32>) -> tensor<4194304xf32> {
  %y = stablehlo.add %x, %z : tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}
