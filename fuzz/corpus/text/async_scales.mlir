func.func @main(%a: tensor<2xf32>) -> tensor<1xf32> {
  %q = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.1>>
  %0 = "stablehlo.async_start"(%q) ({
   ^bb0(%x: tensor<2x!quant.uniform<i8:f32, 0.3>>):
    %s = stablehlo.slice %x [0:1] : (tensor<2x!quant.uniform<i8:f32, 0.3>>) -> tensor<1x!quant.uniform<i8:f32, 0.3>>
    stablehlo.return %s : tensor<1x!quant.uniform<i8:f32, 0.3>>
  }) : (tensor<2x!quant.uniform<i8:f32, 0.1>>) -> !stablehlo.future<tensor<1x!quant.uniform<i8:f32, 0.3>>>
  %w = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<1x!quant.uniform<i8:f32, 0.3>>>) -> tensor<1x!quant.uniform<i8:f32, 0.3>>
  %d = stablehlo.uniform_dequantize %w : (tensor<1x!quant.uniform<i8:f32, 0.3>>) -> tensor<1xf32>
  return %d : tensor<1xf32>
}
