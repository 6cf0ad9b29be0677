// A product of matrices, which a device may take whole, and a function of each element.
func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %product = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %result = stablehlo.tanh %product : tensor<512x512xf32>
  return %result : tensor<512x512xf32>
}
