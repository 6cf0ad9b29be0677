func.func @main(%x: tensor<65536xf32>, %u: tensor<65536xf32>) -> tensor<65536xf32> {
  %i = stablehlo.iota dim = 0 : tensor<65536x1xi32>
  %m = stablehlo.constant dense<1> : tensor<65536x1xi32>
  %k = stablehlo.xor %i, %m : tensor<65536x1xi32>
  %y = "stablehlo.scatter"(%x, %k, %u) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) {unique_indices = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<65536xf32>, tensor<65536x1xi32>, tensor<65536xf32>) -> tensor<65536xf32>
  return %y : tensor<65536xf32>
}
