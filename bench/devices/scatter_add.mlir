func.func @main(%x: tensor<1024xf32>, %u: tensor<65536xf32>) -> tensor<1024xf32> {
  %i = stablehlo.iota dim = 0 : tensor<65536x1xi32>
  %m = stablehlo.constant dense<1023> : tensor<65536x1xi32>
  %k = stablehlo.and %i, %m : tensor<65536x1xi32>
  %y = "stablehlo.scatter"(%x, %k, %u) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<1024xf32>, tensor<65536x1xi32>, tensor<65536xf32>) -> tensor<1024xf32>
  return %y : tensor<1024xf32>
}
