module @jit_transformer_block attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x16x64xf32>, %arg1: tensor<2x16xi1>, %arg2: tensor<64xf32>, %arg3: tensor<64xf32>, %arg4: tensor<64x192xf32>, %arg5: tensor<64x64xf32>, %arg6: tensor<64xf32>, %arg7: tensor<64xf32>, %arg8: tensor<64x256xf32>, %arg9: tensor<256xf32>, %arg10: tensor<256x64xf32>, %arg11: tensor<64xf32>) -> (tensor<2x16x64xf32> {jax.result_info = "result[0]"}, tensor<2x16x64xf32> {jax.result_info = "result[1]"}, tensor<2x16x64xf32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_0 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x16x1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %4 = call @_var(%arg0, %c) : (tensor<2x16x64xf32>, tensor<i32>) -> tensor<2x16x1xf32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %6 = stablehlo.subtract %arg0, %5 : tensor<2x16x64xf32>
    %cst_1 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %8 = stablehlo.add %4, %7 : tensor<2x16x1xf32>
    %9 = stablehlo.rsqrt %8 : tensor<2x16x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %11 = stablehlo.multiply %6, %10 : tensor<2x16x64xf32>
    %12 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %14 = stablehlo.multiply %11, %13 : tensor<2x16x64xf32>
    %15 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %17 = stablehlo.add %14, %16 : tensor<2x16x64xf32>
    %18 = stablehlo.dot_general %17, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x192xf32>) -> tensor<2x16x192xf32>
    %19 = stablehlo.reshape %18 : (tensor<2x16x192xf32>) -> tensor<2x16x3x4x16xf32>
    %20 = stablehlo.slice %19 [0:2, 0:16, 0:1, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %21 = stablehlo.reshape %20 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %22 = stablehlo.slice %19 [0:2, 0:16, 1:2, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %23 = stablehlo.reshape %22 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %24 = stablehlo.slice %19 [0:2, 0:16, 2:3, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %25 = stablehlo.reshape %24 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %26 = stablehlo.dot_general %21, %23, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>) -> tensor<2x4x16x16xf32>
    %cst_2 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x4x16x16xf32>
    %28 = stablehlo.divide %26, %27 : tensor<2x4x16x16xf32>
    %29 = stablehlo.broadcast_in_dim %arg1, dims = [0, 3] : (tensor<2x16xi1>) -> tensor<2x1x1x16xi1>
    %cst_3 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %30 = call @_where_0(%29, %28, %cst_3) : (tensor<2x1x1x16xi1>, tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16x16xf32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %31 = stablehlo.reduce(%30 init: %cst_4) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x4x16xf32>
    %33 = stablehlo.maximum %32, %31 : tensor<2x4x16xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %36 = stablehlo.subtract %30, %35 : tensor<2x4x16x16xf32>
    %37 = stablehlo.exponential %36 : tensor<2x4x16x16xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.reduce(%37 init: %cst_6) applies stablehlo.add across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %41 = stablehlo.divide %37, %40 : tensor<2x4x16x16xf32>
    %42 = stablehlo.dot_general %25, %41, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
    %43 = stablehlo.transpose %42, dims = [0, 3, 1, 2] : (tensor<2x4x16x16xf32>) -> tensor<2x16x4x16xf32>
    %44 = stablehlo.reshape %43 : (tensor<2x16x4x16xf32>) -> tensor<2x16x64xf32>
    %45 = stablehlo.dot_general %44, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
    %46 = stablehlo.add %arg0, %45 : tensor<2x16x64xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %47 = stablehlo.reduce(%46 init: %cst_7) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_8 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %50 = stablehlo.divide %48, %49 : tensor<2x16x1xf32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %51 = call @_var(%46, %c_9) : (tensor<2x16x64xf32>, tensor<i32>) -> tensor<2x16x1xf32>
    %52 = stablehlo.broadcast_in_dim %50, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %53 = stablehlo.subtract %46, %52 : tensor<2x16x64xf32>
    %cst_10 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %55 = stablehlo.add %51, %54 : tensor<2x16x1xf32>
    %56 = stablehlo.rsqrt %55 : tensor<2x16x1xf32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %58 = stablehlo.multiply %53, %57 : tensor<2x16x64xf32>
    %59 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %60 = stablehlo.broadcast_in_dim %59, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %61 = stablehlo.multiply %58, %60 : tensor<2x16x64xf32>
    %62 = stablehlo.broadcast_in_dim %arg7, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %64 = stablehlo.add %61, %63 : tensor<2x16x64xf32>
    %65 = stablehlo.dot_general %64, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x256xf32>) -> tensor<2x16x256xf32>
    %66 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<2x16x256xf32>
    %68 = stablehlo.add %65, %67 : tensor<2x16x256xf32>
    %cst_11 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %70 = stablehlo.multiply %69, %68 : tensor<2x16x256xf32>
    %71 = stablehlo.negate %68 : tensor<2x16x256xf32>
    %cst_12 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %73 = stablehlo.multiply %71, %72 : tensor<2x16x256xf32>
    %74 = chlo.erfc %73 : tensor<2x16x256xf32> -> tensor<2x16x256xf32>
    %75 = stablehlo.multiply %70, %74 : tensor<2x16x256xf32>
    %76 = stablehlo.dot_general %75, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x256xf32>, tensor<256x64xf32>) -> tensor<2x16x64xf32>
    %77 = stablehlo.add %46, %76 : tensor<2x16x64xf32>
    %78 = stablehlo.broadcast_in_dim %arg11, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %80 = stablehlo.add %77, %79 : tensor<2x16x64xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %81 = stablehlo.reduce(%arg0 init: %cst_13) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_14 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %84 = stablehlo.divide %82, %83 : tensor<2x16x1xf32>
    %c_15 = stablehlo.constant dense<0> : tensor<i32>
    %85 = call @_var(%arg0, %c_15) : (tensor<2x16x64xf32>, tensor<i32>) -> tensor<2x16x1xf32>
    %86 = stablehlo.broadcast_in_dim %84, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %87 = stablehlo.subtract %arg0, %86 : tensor<2x16x64xf32>
    %cst_16 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %88 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %89 = stablehlo.add %85, %88 : tensor<2x16x1xf32>
    %90 = stablehlo.rsqrt %89 : tensor<2x16x1xf32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %92 = stablehlo.multiply %87, %91 : tensor<2x16x64xf32>
    %93 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %95 = stablehlo.multiply %92, %94 : tensor<2x16x64xf32>
    %96 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %97 = stablehlo.broadcast_in_dim %96, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %98 = stablehlo.add %95, %97 : tensor<2x16x64xf32>
    %99 = stablehlo.dot_general %98, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x192xf32>) -> tensor<2x16x192xf32>
    %100 = stablehlo.reshape %99 : (tensor<2x16x192xf32>) -> tensor<2x16x3x4x16xf32>
    %101 = stablehlo.slice %100 [0:2, 0:16, 0:1, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %102 = stablehlo.reshape %101 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %103 = stablehlo.slice %100 [0:2, 0:16, 1:2, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %104 = stablehlo.reshape %103 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %105 = stablehlo.slice %100 [0:2, 0:16, 2:3, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %106 = stablehlo.reshape %105 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %107 = stablehlo.dot_general %102, %104, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>) -> tensor<2x4x16x16xf32>
    %cst_17 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x4x16x16xf32>
    %109 = stablehlo.divide %107, %108 : tensor<2x4x16x16xf32>
    %110 = stablehlo.broadcast_in_dim %arg1, dims = [0, 3] : (tensor<2x16xi1>) -> tensor<2x1x1x16xi1>
    %cst_18 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %111 = call @_where_0(%110, %109, %cst_18) : (tensor<2x1x1x16xi1>, tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16x16xf32>
    %cst_19 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %112 = stablehlo.reduce(%111 init: %cst_19) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %cst_20 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %113 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<2x4x16xf32>
    %114 = stablehlo.maximum %113, %112 : tensor<2x4x16xf32>
    %115 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %116 = stablehlo.broadcast_in_dim %115, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %117 = stablehlo.subtract %111, %116 : tensor<2x4x16x16xf32>
    %118 = stablehlo.exponential %117 : tensor<2x4x16x16xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %119 = stablehlo.reduce(%118 init: %cst_21) applies stablehlo.add across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %121 = stablehlo.broadcast_in_dim %120, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %122 = stablehlo.divide %118, %121 : tensor<2x4x16x16xf32>
    %123 = stablehlo.dot_general %106, %122, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
    %124 = stablehlo.transpose %123, dims = [0, 3, 1, 2] : (tensor<2x4x16x16xf32>) -> tensor<2x16x4x16xf32>
    %125 = stablehlo.reshape %124 : (tensor<2x16x4x16xf32>) -> tensor<2x16x64xf32>
    %126 = stablehlo.dot_general %125, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
    %127 = stablehlo.add %arg0, %126 : tensor<2x16x64xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %128 = stablehlo.reduce(%127 init: %cst_22) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_23 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %130 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %131 = stablehlo.divide %129, %130 : tensor<2x16x1xf32>
    %c_24 = stablehlo.constant dense<0> : tensor<i32>
    %132 = call @_var(%127, %c_24) : (tensor<2x16x64xf32>, tensor<i32>) -> tensor<2x16x1xf32>
    %133 = stablehlo.broadcast_in_dim %131, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %134 = stablehlo.subtract %127, %133 : tensor<2x16x64xf32>
    %cst_25 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %135 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %136 = stablehlo.add %132, %135 : tensor<2x16x1xf32>
    %137 = stablehlo.rsqrt %136 : tensor<2x16x1xf32>
    %138 = stablehlo.broadcast_in_dim %137, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %139 = stablehlo.multiply %134, %138 : tensor<2x16x64xf32>
    %140 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %141 = stablehlo.broadcast_in_dim %140, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %142 = stablehlo.multiply %139, %141 : tensor<2x16x64xf32>
    %143 = stablehlo.broadcast_in_dim %arg7, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %144 = stablehlo.broadcast_in_dim %143, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %145 = stablehlo.add %142, %144 : tensor<2x16x64xf32>
    %146 = stablehlo.dot_general %145, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x256xf32>) -> tensor<2x16x256xf32>
    %147 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %148 = stablehlo.broadcast_in_dim %147, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<2x16x256xf32>
    %149 = stablehlo.add %146, %148 : tensor<2x16x256xf32>
    %cst_26 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %150 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %151 = stablehlo.multiply %150, %149 : tensor<2x16x256xf32>
    %cst_27 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %152 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %153 = stablehlo.multiply %149, %152 : tensor<2x16x256xf32>
    %154 = chlo.erf %153 : tensor<2x16x256xf32> -> tensor<2x16x256xf32>
    %cst_28 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %155 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %156 = stablehlo.add %155, %154 : tensor<2x16x256xf32>
    %157 = stablehlo.multiply %151, %156 : tensor<2x16x256xf32>
    %158 = stablehlo.dot_general %157, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x256xf32>, tensor<256x64xf32>) -> tensor<2x16x64xf32>
    %159 = stablehlo.add %127, %158 : tensor<2x16x64xf32>
    %160 = stablehlo.broadcast_in_dim %arg11, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %161 = stablehlo.broadcast_in_dim %160, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %162 = stablehlo.add %159, %161 : tensor<2x16x64xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %163 = stablehlo.reduce(%arg0 init: %cst_29) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_30 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %165 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %166 = stablehlo.divide %164, %165 : tensor<2x16x1xf32>
    %c_31 = stablehlo.constant dense<0> : tensor<i32>
    %167 = call @_var(%arg0, %c_31) : (tensor<2x16x64xf32>, tensor<i32>) -> tensor<2x16x1xf32>
    %168 = stablehlo.broadcast_in_dim %166, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %169 = stablehlo.subtract %arg0, %168 : tensor<2x16x64xf32>
    %cst_32 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %170 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %171 = stablehlo.add %167, %170 : tensor<2x16x1xf32>
    %172 = stablehlo.rsqrt %171 : tensor<2x16x1xf32>
    %173 = stablehlo.broadcast_in_dim %172, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %174 = stablehlo.multiply %169, %173 : tensor<2x16x64xf32>
    %175 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %177 = stablehlo.multiply %174, %176 : tensor<2x16x64xf32>
    %178 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %179 = stablehlo.broadcast_in_dim %178, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %180 = stablehlo.add %177, %179 : tensor<2x16x64xf32>
    %181 = stablehlo.dot_general %180, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x192xf32>) -> tensor<2x16x192xf32>
    %182 = stablehlo.reshape %181 : (tensor<2x16x192xf32>) -> tensor<2x16x3x4x16xf32>
    %183 = stablehlo.slice %182 [0:2, 0:16, 0:1, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %184 = stablehlo.reshape %183 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %185 = stablehlo.slice %182 [0:2, 0:16, 1:2, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %186 = stablehlo.reshape %185 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %187 = stablehlo.slice %182 [0:2, 0:16, 2:3, 0:4, 0:16] : (tensor<2x16x3x4x16xf32>) -> tensor<2x16x1x4x16xf32>
    %188 = stablehlo.reshape %187 : (tensor<2x16x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %189 = stablehlo.dot_general %184, %186, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>) -> tensor<2x4x16x16xf32>
    %cst_33 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %190 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<2x4x16x16xf32>
    %191 = stablehlo.divide %189, %190 : tensor<2x4x16x16xf32>
    %192 = stablehlo.broadcast_in_dim %arg1, dims = [0, 3] : (tensor<2x16xi1>) -> tensor<2x1x1x16xi1>
    %cst_34 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %193 = call @_where_0(%192, %191, %cst_34) : (tensor<2x1x1x16xi1>, tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16x16xf32>
    %cst_35 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %194 = stablehlo.reduce(%193 init: %cst_35) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %cst_36 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %195 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<2x4x16xf32>
    %196 = stablehlo.maximum %195, %194 : tensor<2x4x16xf32>
    %197 = stablehlo.broadcast_in_dim %196, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %198 = stablehlo.broadcast_in_dim %197, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %199 = stablehlo.subtract %193, %198 : tensor<2x4x16x16xf32>
    %200 = stablehlo.exponential %199 : tensor<2x4x16x16xf32>
    %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %201 = stablehlo.reduce(%200 init: %cst_37) applies stablehlo.add across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %202 = stablehlo.broadcast_in_dim %201, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %203 = stablehlo.broadcast_in_dim %202, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %204 = stablehlo.divide %200, %203 : tensor<2x4x16x16xf32>
    %205 = stablehlo.dot_general %188, %204, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
    %206 = stablehlo.transpose %205, dims = [0, 3, 1, 2] : (tensor<2x4x16x16xf32>) -> tensor<2x16x4x16xf32>
    %207 = stablehlo.reshape %206 : (tensor<2x16x4x16xf32>) -> tensor<2x16x64xf32>
    %208 = stablehlo.dot_general %207, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
    %209 = stablehlo.add %arg0, %208 : tensor<2x16x64xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %210 = stablehlo.reduce(%209 init: %cst_38) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %211 = stablehlo.broadcast_in_dim %210, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_39 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %212 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %213 = stablehlo.divide %211, %212 : tensor<2x16x1xf32>
    %c_40 = stablehlo.constant dense<0> : tensor<i32>
    %214 = call @_var(%209, %c_40) : (tensor<2x16x64xf32>, tensor<i32>) -> tensor<2x16x1xf32>
    %215 = stablehlo.broadcast_in_dim %213, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %216 = stablehlo.subtract %209, %215 : tensor<2x16x64xf32>
    %cst_41 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %217 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %218 = stablehlo.add %214, %217 : tensor<2x16x1xf32>
    %219 = stablehlo.rsqrt %218 : tensor<2x16x1xf32>
    %220 = stablehlo.broadcast_in_dim %219, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %221 = stablehlo.multiply %216, %220 : tensor<2x16x64xf32>
    %222 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %223 = stablehlo.broadcast_in_dim %222, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %224 = stablehlo.multiply %221, %223 : tensor<2x16x64xf32>
    %225 = stablehlo.broadcast_in_dim %arg7, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %226 = stablehlo.broadcast_in_dim %225, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %227 = stablehlo.add %224, %226 : tensor<2x16x64xf32>
    %228 = stablehlo.dot_general %227, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x256xf32>) -> tensor<2x16x256xf32>
    %229 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %230 = stablehlo.broadcast_in_dim %229, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<2x16x256xf32>
    %231 = stablehlo.add %228, %230 : tensor<2x16x256xf32>
    %232 = stablehlo.multiply %231, %231 : tensor<2x16x256xf32>
    %233 = stablehlo.multiply %232, %231 : tensor<2x16x256xf32>
    %cst_42 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %234 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %235 = stablehlo.multiply %234, %233 : tensor<2x16x256xf32>
    %236 = stablehlo.add %231, %235 : tensor<2x16x256xf32>
    %cst_43 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %237 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %238 = stablehlo.multiply %237, %236 : tensor<2x16x256xf32>
    %239 = stablehlo.tanh %238 : tensor<2x16x256xf32>
    %cst_44 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %240 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %241 = stablehlo.add %240, %239 : tensor<2x16x256xf32>
    %cst_45 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %242 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %243 = stablehlo.multiply %242, %241 : tensor<2x16x256xf32>
    %244 = stablehlo.multiply %231, %243 : tensor<2x16x256xf32>
    %245 = stablehlo.dot_general %244, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x256xf32>, tensor<256x64xf32>) -> tensor<2x16x64xf32>
    %246 = stablehlo.add %209, %245 : tensor<2x16x64xf32>
    %247 = stablehlo.broadcast_in_dim %arg11, dims = [2] : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %248 = stablehlo.broadcast_in_dim %247, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %249 = stablehlo.add %246, %248 : tensor<2x16x64xf32>
    return %80, %162, %249 : tensor<2x16x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>
  }
  func.func private @_var(%arg0: tensor<2x16x64xf32>, %arg1: tensor<i32>) -> tensor<2x16x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_0 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x16x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x16x64xf32>
    %6 = chlo.square %5 : tensor<2x16x64xf32> -> tensor<2x16x64xf32>
    %7 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %8 = stablehlo.subtract %cst_1, %7 : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %11 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %12 = stablehlo.divide %10, %11 : tensor<2x16x1xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.compare GT, %8, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = call @_where(%13, %12, %cst_4) : (tensor<i1>, tensor<2x16x1xf32>, tensor<f32>) -> tensor<2x16x1xf32>
    return %14 : tensor<2x16x1xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<2x16x1xf32>, %arg2: tensor<f32>) -> tensor<2x16x1xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<2x16x1xf32>
    return %2 : tensor<2x16x1xf32>
  }
  func.func private @_where_0(%arg0: tensor<2x1x1x16xi1>, %arg1: tensor<2x4x16x16xf32>, %arg2: tensor<f32>) -> tensor<2x4x16x16xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2, 3] : (tensor<2x1x1x16xi1>) -> tensor<2x4x16x16xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x16x16xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x4x16x16xi1>, tensor<2x4x16x16xf32>
    return %3 : tensor<2x4x16x16xf32>
  }
}
