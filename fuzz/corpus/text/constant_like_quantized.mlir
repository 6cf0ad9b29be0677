func.func @main(%a: tensor<2x!quant.uniform<u8:f32, 0.1>>) -> tensor<2xi64> {
  %0 = "chlo.constant_like"(%a) {value = 7 : i64} : (tensor<2x!quant.uniform<u8:f32, 0.1>>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}
