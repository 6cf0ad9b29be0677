module @jit_dynamic attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x6xf32>, %arg1: tensor<6x8xf32>, %arg2: tensor<8xf32>) -> (tensor<?x8xf32> {jax.result_info = "result[0]"}, tensor<?x4xf32> {jax.result_info = "result[1]"}, tensor<?x6xf32> {jax.result_info = "result[2]"}, tensor<?x?xf32> {jax.result_info = "result[3]"}, tensor<?xf32> {jax.result_info = "result[4]"}, tensor<8xf32> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x6xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'batch'. Using the following polymorphic shapes specifications: args[0].shape = (batch, 6). Obtained dimension variables: 'batch' = {0} from specification 'batch' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2:6 = call @_wrapped_jax_export_main(%0, %arg0, %arg1, %arg2) : (tensor<i32>, tensor<?x6xf32>, tensor<6x8xf32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x6xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<8xf32>)
    return %2#0, %2#1, %2#2, %2#3, %2#4, %2#5 : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x6xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<8xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "batch"}, %arg1: tensor<?x6xf32>, %arg2: tensor<6x8xf32>, %arg3: tensor<8xf32>) -> (tensor<?x8xf32> {jax.result_info = "result[0]"}, tensor<?x4xf32> {jax.result_info = "result[1]"}, tensor<?x6xf32> {jax.result_info = "result[2]"}, tensor<?x?xf32> {jax.result_info = "result[3]"}, tensor<?xf32> {jax.result_info = "result[4]"}, tensor<8xf32> {jax.result_info = "result[5]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<4> : tensor<1xi32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_2 = stablehlo.constant dense<1> : tensor<1xi32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_4 = stablehlo.constant dense<8> : tensor<1xi32>
    %0 = stablehlo.dot_general %arg1, %arg2, contracting_dims = [1] x [0] : (tensor<?x6xf32>, tensor<6x8xf32>) -> tensor<?x8xf32>
    %1 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %2 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.concatenate %2, %c_4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_broadcast_in_dim %1, %3, dims = [0, 1] : (tensor<1x8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %5 = stablehlo.add %0, %4 : tensor<?x8xf32>
    %6 = call @relu(%arg0, %5) : (tensor<i32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %7 = stablehlo.reduce(%6 init: %cst_3) applies stablehlo.maximum across dimensions = [1] : (tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
    %8 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.dynamic_broadcast_in_dim %cst_3, %8, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %10 = stablehlo.maximum %9, %7 : tensor<?xf32>
    %11 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.concatenate %11, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %13 = stablehlo.dynamic_broadcast_in_dim %10, %12, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    %14 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.concatenate %14, %c_4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %16 = stablehlo.dynamic_broadcast_in_dim %13, %15, dims = [0, 1] : (tensor<?x1xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %17 = stablehlo.subtract %6, %16 : tensor<?x8xf32>
    %18 = stablehlo.exponential %17 : tensor<?x8xf32>
    %19 = stablehlo.reduce(%18 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
    %20 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %21 = stablehlo.concatenate %20, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %22 = stablehlo.dynamic_broadcast_in_dim %19, %21, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32>
    %23 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %24 = stablehlo.concatenate %23, %c_4, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %25 = stablehlo.dynamic_broadcast_in_dim %22, %24, dims = [0, 1] : (tensor<?x1xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %26 = stablehlo.divide %18, %25 : tensor<?x8xf32>
    %27 = stablehlo.convert %arg0 : tensor<i32>
    %28 = stablehlo.multiply %27, %c_0 : tensor<i32>
    %29 = stablehlo.reshape %28 : (tensor<i32>) -> tensor<1xi32>
    %30 = stablehlo.concatenate %29, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %31 = stablehlo.dynamic_reshape %26, %30 : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    %32 = stablehlo.negate %arg1 : tensor<?x6xf32>
    %33 = stablehlo.concatenate %arg1, %32, dim = 0 : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %34 = stablehlo.transpose %6, dims = [1, 0] : (tensor<?x8xf32>) -> tensor<8x?xf32>
    %35 = stablehlo.dot_general %6, %34, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %36 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %37 = stablehlo.dynamic_iota %36, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %38 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %39 = stablehlo.dynamic_broadcast_in_dim %cst, %38, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %40 = stablehlo.multiply %39, %37 : tensor<?xf32>
    %41 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %42 = stablehlo.dynamic_broadcast_in_dim %cst_1, %41, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %43 = stablehlo.add %42, %40 : tensor<?xf32>
    %44 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
    %45 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %46 = stablehlo.dynamic_broadcast_in_dim %44, %45, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %47 = stablehlo.divide %43, %46 : tensor<?xf32>
    %48 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
    %49 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [0] : (tensor<?x8xf32>, tensor<f32>) -> tensor<8xf32>
    %50 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %51 = stablehlo.divide %49, %50 : tensor<8xf32>
    return %26, %31, %33, %35, %47, %51 : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x6xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<8xf32>
  }
  func.func private @relu(%arg0: tensor<i32> {jax.global_constant = "batch"}, %arg1: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %c = stablehlo.constant dense<8> : tensor<1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.concatenate %0, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %2 = stablehlo.dynamic_broadcast_in_dim %cst, %1, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x8xf32>
    %3 = stablehlo.maximum %arg1, %2 : tensor<?x8xf32>
    return %3 : tensor<?x8xf32>
  }
}

