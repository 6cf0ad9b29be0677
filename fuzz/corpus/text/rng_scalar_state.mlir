func.func @main(%s: tensor<f32>) -> (tensor<f32>, tensor<1xui16>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<f32>) -> (tensor<f32>, tensor<1xui16>)
  return %0, %1 : tensor<f32>, tensor<1xui16>
}
