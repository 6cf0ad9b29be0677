module @jit_transpose attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x128x256xf32>) -> (tensor<256x128x64xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.transpose %arg0, dims = [2, 1, 0] : (tensor<64x128x256xf32>) -> tensor<256x128x64xf32>
    return %0 : tensor<256x128x64xf32>
  }
}
