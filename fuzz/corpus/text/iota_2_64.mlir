func.func @main(%a: tensor<f32>) -> tensor<1x1xi32> {
  %d = stablehlo.iota dim = 0 : tensor<4294967296x4294967296xi32>
  %s = stablehlo.slice %d [5:6, 0:1] : (tensor<4294967296x4294967296xi32>) -> tensor<1x1xi32>
  return %s : tensor<1x1xi32>
}
