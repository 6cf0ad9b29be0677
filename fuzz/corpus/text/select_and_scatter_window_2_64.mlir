func.func @main(%a: tensor<2x2xf32>, %s: tensor<2x2xf32>, %p: tensor<f32>) -> tensor<2x2xf32> {
  %d = "stablehlo.select_and_scatter"(%a, %s, %p) ({
   ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %m = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %m : tensor<i1>
  },{
   ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %m = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 4294967296,4294967296>, padding = dense<[[2147483648,2147483647],[2147483648,2147483647]]> : tensor<2x2xi64>} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %d : tensor<2x2xf32>
}
