module @jit_solver attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x16x16xf32>, %arg1: tensor<8x16xf32>) -> (tensor<8x16xf32> {jax.result_info = "result[0]"}, tensor<i32> {jax.result_info = "result[1]"}, tensor<25x8xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.multiply %arg1, %arg1 : tensor<8x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    %cst_0 = stablehlo.constant dense<2.250000e-08> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %3 = stablehlo.multiply %2, %1 : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<25x8xf32>
    %5 = stablehlo.multiply %arg1, %arg1 : tensor<8x16xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.reduce(%5 init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %8 = "stablehlo.scatter"(%4, %7, %6) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      stablehlo.return %arg3 : tensor<f32>
    }) : (tensor<25x8xf32>, tensor<1xi32>, tensor<8xf32>) -> tensor<25x8xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %10:8 = stablehlo.while(%iterArg = %3, %iterArg_5 = %3, %iterArg_6 = %arg0, %iterArg_7 = %c_4, %iterArg_8 = %9, %iterArg_9 = %arg1, %iterArg_10 = %arg1, %iterArg_11 = %8) : tensor<8xf32>, tensor<8xf32>, tensor<8x16x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<25x8xf32>
    cond {
      %c_12 = stablehlo.constant dense<24> : tensor<i32>
      %11 = stablehlo.compare LT, %iterArg_7, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %12 = func.call @dynamic_index_in_dim(%iterArg_11, %iterArg_7) : (tensor<25x8xf32>, tensor<i32>) -> tensor<8xf32>
      %13 = stablehlo.compare GT, %12, %iterArg, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
      %c_13 = stablehlo.constant dense<false> : tensor<i1>
      %14 = stablehlo.reduce(%13 init: %c_13) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
      %15 = stablehlo.and %11, %14 : tensor<i1>
      stablehlo.return %15 : tensor<i1>
    } do {
      %11 = func.call @dynamic_index_in_dim(%iterArg_11, %iterArg_7) : (tensor<25x8xf32>, tensor<i32>) -> tensor<8xf32>
      %12 = stablehlo.compare GT, %11, %iterArg_5, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
      %13 = stablehlo.dot_general %iterArg_6, %iterArg_10, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x16x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %14 = stablehlo.multiply %iterArg_10, %13 : tensor<8x16xf32>
      %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %15 = stablehlo.reduce(%14 init: %cst_12) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
      %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %16 = func.call @_where(%12, %15, %cst_13) : (tensor<8xi1>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
      %17 = stablehlo.divide %11, %16 : tensor<8xf32>
      %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %18 = func.call @_where(%12, %17, %cst_14) : (tensor<8xi1>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
      %19 = stablehlo.broadcast_in_dim %18, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
      %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x16xf32>
      %21 = stablehlo.multiply %20, %iterArg_10 : tensor<8x16xf32>
      %22 = stablehlo.add %iterArg_8, %21 : tensor<8x16xf32>
      %23 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x16xf32>
      %24 = stablehlo.multiply %23, %13 : tensor<8x16xf32>
      %25 = stablehlo.subtract %iterArg_9, %24 : tensor<8x16xf32>
      %26 = stablehlo.multiply %25, %25 : tensor<8x16xf32>
      %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %27 = stablehlo.reduce(%26 init: %cst_15) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
      %28 = stablehlo.divide %27, %11 : tensor<8xf32>
      %29 = stablehlo.broadcast_in_dim %28, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32>
      %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x16xf32>
      %31 = stablehlo.multiply %30, %iterArg_10 : tensor<8x16xf32>
      %32 = stablehlo.add %25, %31 : tensor<8x16xf32>
      %33 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<8xi1>) -> tensor<8x1xi1>
      %34 = func.call @_where_0(%33, %32, %iterArg_10) : (tensor<8x1xi1>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %c_16 = stablehlo.constant dense<1> : tensor<i32>
      %35 = stablehlo.add %iterArg_7, %c_16 : tensor<i32>
      %36 = func.call @dynamic_update_index_in_dim(%iterArg_11, %27, %35) : (tensor<25x8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<25x8xf32>
      %c_17 = stablehlo.constant dense<1> : tensor<i32>
      %37 = stablehlo.add %iterArg_7, %c_17 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_5, %iterArg_6, %37, %22, %25, %34, %36 : tensor<8xf32>, tensor<8xf32>, tensor<8x16x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<25x8xf32>
    }
    return %10#4, %10#3, %10#7 : tensor<8x16xf32>, tensor<i32>, tensor<25x8xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<25x8xf32>, %arg1: tensor<i32>) -> tensor<8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare LT, %arg1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<25> : tensor<i32>
    %1 = stablehlo.add %arg1, %c_0 : tensor<i32>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.dynamic_slice %arg0, %2, %c_1, sizes = [1, 8] : (tensor<25x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x8xf32>) -> tensor<8xf32>
    return %4 : tensor<8xf32>
  }
  func.func private @_where(%arg0: tensor<8xi1>, %arg1: tensor<8xf32>, %arg2: tensor<f32>) -> tensor<8xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<8xi1>, tensor<8xf32>
    return %2 : tensor<8xf32>
  }
  func.func private @_where_0(%arg0: tensor<8x1xi1>, %arg1: tensor<8x16xf32>, %arg2: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8x1xi1>) -> tensor<8x16xi1>
    %1 = stablehlo.select %0, %arg1, %arg2 : tensor<8x16xi1>, tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<25x8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<i32>) -> tensor<25x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare LT, %arg2, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<25> : tensor<i32>
    %2 = stablehlo.add %arg2, %c_0 : tensor<i32>
    %3 = stablehlo.select %1, %2, %arg2 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.dynamic_update_slice %arg0, %0, %3, %c_1 : (tensor<25x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<25x8xf32>
    return %4 : tensor<25x8xf32>
  }
}
