module @jit_linalg attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x8x8xf32>, %arg1: tensor<3x8x2xf32>) -> (tensor<3x8x8xf32> {jax.result_info = "result[0]"}, tensor<3x8x2xf32> {jax.result_info = "result[1]"}, tensor<3x8x2xf32> {jax.result_info = "result[2]"}) {
    %0 = call @cholesky(%arg0) : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
    %1 = call @_solve_triangular(%0, %arg1) : (tensor<3x8x8xf32>, tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
    %2 = call @_cho_solve(%0, %arg1) : (tensor<3x8x8xf32>, tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
    return %0, %1, %2 : tensor<3x8x8xf32>, tensor<3x8x2xf32>, tensor<3x8x2xf32>
  }
  func.func private @cholesky(%arg0: tensor<3x8x8xf32>) -> tensor<3x8x8xf32> {
    %0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<3x8x8xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
    %3 = stablehlo.divide %1, %2 : tensor<3x8x8xf32>
    %4 = stablehlo.cholesky %3, lower = true : tensor<3x8x8xf32>
    %5 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %7 = stablehlo.add %5, %6 : tensor<8x8xi32>
    %8 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %9 = stablehlo.compare GE, %7, %8, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [1, 2] : (tensor<8x8xi1>) -> tensor<3x8x8xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
    %12 = stablehlo.select %10, %4, %11 : tensor<3x8x8xi1>, tensor<3x8x8xf32>
    return %12 : tensor<3x8x8xf32>
  }
  func.func private @_solve_triangular(%arg0: tensor<3x8x8xf32>, %arg1: tensor<3x8x2xf32>) -> tensor<3x8x2xf32> {
    %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x8x8xf32>, tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
    return %0 : tensor<3x8x2xf32>
  }
  func.func private @_cho_solve(%arg0: tensor<3x8x8xf32>, %arg1: tensor<3x8x2xf32>) -> tensor<3x8x2xf32> {
    %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x8x8xf32>, tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
    %1 = "stablehlo.triangular_solve"(%arg0, %0) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<3x8x8xf32>, tensor<3x8x2xf32>) -> tensor<3x8x2xf32>
    return %1 : tensor<3x8x2xf32>
  }
}
