module @jit_bf16_mlp attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x64xbf16>, %arg1: tensor<64xbf16>, %arg2: tensor<64x8xbf16>, %arg3: tensor<8xbf16>, %arg4: tensor<16x32xbf16>) -> (tensor<16x8xf32> {jax.result_info = "result[0]"}, tensor<16x64xbf16> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xbf16>, tensor<32x64xbf16>) -> tensor<16x64xbf16>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<64xbf16>) -> tensor<1x64xbf16>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x64xbf16>) -> tensor<16x64xbf16>
    %3 = stablehlo.add %0, %2 : tensor<16x64xbf16>
    %4 = stablehlo.tanh %3 : tensor<16x64xbf16>
    %5 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x64xbf16>, tensor<64x8xbf16>) -> tensor<16x8xf32>
    %6 = stablehlo.convert %arg3 : (tensor<8xbf16>) -> tensor<8xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<16x8xf32>
    %9 = stablehlo.add %5, %8 : tensor<16x8xf32>
    return %9, %4 : tensor<16x8xf32>, tensor<16x64xbf16>
  }
}
