func.func @main(%a: tensor<3xf8E8M0FNU>) -> tensor<3xf8E8M0FNU> {
  %q = stablehlo.uniform_quantize %a : (tensor<3xf8E8M0FNU>) -> tensor<3x!quant.uniform<i8:f8E8M0FNU, 0.5:1>>
  %d = stablehlo.uniform_dequantize %q : (tensor<3x!quant.uniform<i8:f8E8M0FNU, 0.5:1>>) -> tensor<3xf8E8M0FNU>
  return %d : tensor<3xf8E8M0FNU>
}
