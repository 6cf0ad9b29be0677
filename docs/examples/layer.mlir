// A layer of a network, as a framework writes it: y = relu(x w + b).
func.func @main(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %product = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %sum = stablehlo.add %product, %bias : tensor<2x4xf32>
  %y = func.call @relu(%sum) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func private @relu(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<2x4xf32>
  %y = stablehlo.maximum %x, %zero : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
