func.func @main(%x: tensor<1024x1024xf32>, %g: tensor<1024xf32>, %b: tensor<1024xf32>) -> tensor<1024x1024xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<1024.0> : tensor<1024xf32>
  %epsilon = stablehlo.constant dense<1.0e-5> : tensor<1024xf32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %mean = stablehlo.divide %sum, %count : tensor<1024xf32>
  %mb = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %d = stablehlo.subtract %x, %mb : tensor<1024x1024xf32>
  %d2 = stablehlo.multiply %d, %d : tensor<1024x1024xf32>
  %squares = stablehlo.reduce(%d2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %var = stablehlo.divide %squares, %count : tensor<1024xf32>
  %ve = stablehlo.add %var, %epsilon : tensor<1024xf32>
  %r = stablehlo.rsqrt %ve : tensor<1024xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %n = stablehlo.multiply %d, %rb : tensor<1024x1024xf32>
  %gb = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %s = stablehlo.multiply %n, %gb : tensor<1024x1024xf32>
  %y = stablehlo.add %s, %bb : tensor<1024x1024xf32>
  return %y : tensor<1024x1024xf32>
}
