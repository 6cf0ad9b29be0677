// Row-wise softmax of an array whose number of rows is known only when it is called.
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1]
      : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
  %shape = "stablehlo.get_dimension_size"(%x) {dimension = 0 : i64} : (tensor<?x4xf32>) -> tensor<i32>
  %rows = stablehlo.reshape %shape : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %dims = stablehlo.concatenate %rows, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %max_b = stablehlo.dynamic_broadcast_in_dim %max, %dims, dims = [0]
      : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %shifted = stablehlo.subtract %x, %max_b : tensor<?x4xf32>
  %e = stablehlo.exponential %shifted : tensor<?x4xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
  %sum_b = stablehlo.dynamic_broadcast_in_dim %sum, %dims, dims = [0]
      : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  %y = stablehlo.divide %e, %sum_b : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
