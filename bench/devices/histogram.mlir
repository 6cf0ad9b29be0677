func.func @main(%k: tensor<65536x1xi32>) -> tensor<256xi32> {
  %zero = stablehlo.constant dense<0> : tensor<256xi32>
  %one = stablehlo.constant dense<1> : tensor<65536xi32>
  %most = stablehlo.constant dense<255> : tensor<65536x1xi32>
  %bin = stablehlo.and %k, %most : tensor<65536x1xi32>
  %y = "stablehlo.scatter"(%zero, %bin, %one) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<256xi32>, tensor<65536x1xi32>, tensor<65536xi32>) -> tensor<256xi32>
  return %y : tensor<256xi32>
}
