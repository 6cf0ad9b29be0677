func.func @main(%a: tensor<3x3xf32>) -> tensor<1x3xf32> {
  %c = stablehlo.constant dense<2> : tensor<1x1xi32>
  %0 = "stablehlo.gather"(%a, %c) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, -9223372036854775808>} : (tensor<3x3xf32>, tensor<1x1xi32>) -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}
