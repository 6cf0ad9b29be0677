func.func @main(%x: tensor<64x4096xcomplex<f32>>) -> tensor<64x4096xcomplex<f32>> {
  %y = stablehlo.fft %x, type = FFT, length = [4096] : (tensor<64x4096xcomplex<f32>>) -> tensor<64x4096xcomplex<f32>>
  return %y : tensor<64x4096xcomplex<f32>>
}
