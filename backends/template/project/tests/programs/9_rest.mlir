// The other ops: each uses the functions above, and needs no device function of its own.
// ----- rng_bit_generator
func.func @main() -> (tensor<2xui64>, tensor<16xui32>) {
  %s = stablehlo.constant dense<[7, 11]> : tensor<2xui64>
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<16xui32>)
  return %0, %1 : tensor<2xui64>, tensor<16xui32>
}
// ----- fft
// args: 0=random:1
// tolerance: 1e-5
func.func @main(%x: tensor<3x16xcomplex<f32>>) -> tensor<3x16xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [16] : (tensor<3x16xcomplex<f32>>) -> tensor<3x16xcomplex<f32>>
  return %0 : tensor<3x16xcomplex<f32>>
}
// ----- cholesky
// tolerance: 1e-5
func.func @main() -> tensor<3x3xf32> {
  %x = stablehlo.constant dense<[[4.0, 2.0, 0.5], [2.0, 5.0, 1.0], [0.5, 1.0, 3.0]]> : tensor<3x3xf32>
  %b = stablehlo.optimization_barrier %x : tensor<3x3xf32>
  %0 = stablehlo.cholesky %b, lower = true : tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}
// ----- triangular_solve
// tolerance: 1e-5
func.func @main() -> tensor<3x2xf32> {
  %a = stablehlo.constant dense<[[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.5, 1.0, 4.0]]> : tensor<3x3xf32>
  %b = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %c = stablehlo.optimization_barrier %a : tensor<3x3xf32>
  %0 = "stablehlo.triangular_solve"(%c, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
// ----- batch_norm_inference
// args: 0=random:1 1=random:2 2=random:3 3=random:4 4=1.5
// tolerance: 1e-5
func.func @main(%x: tensor<4x3xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) -> tensor<4x3xf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
// ----- case
// args: 0=1 1=random:1
func.func @main(%i: tensor<i32>, %x: tensor<9xi32>) -> tensor<9xi32> {
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<9xi32>
  }, {
    %1 = stablehlo.add %x, %x : tensor<9xi32>
    stablehlo.return %1 : tensor<9xi32>
  }) : (tensor<i32>) -> tensor<9xi32>
  return %0 : tensor<9xi32>
}
// ----- quantized add
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> {
  %a = stablehlo.uniform_quantize %x : (tensor<16xf32>) -> tensor<16x!quant.uniform<i8:f32, 0.05>>
  %b = stablehlo.uniform_quantize %y : (tensor<16xf32>) -> tensor<16x!quant.uniform<i8:f32, 0.05>>
  %c = stablehlo.add %a, %b : tensor<16x!quant.uniform<i8:f32, 0.05>>
  %0 = stablehlo.uniform_dequantize %c : (tensor<16x!quant.uniform<i8:f32, 0.05>>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
