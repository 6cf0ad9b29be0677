// Attention of one query: a rule that would put the matrix first (dot-of-vector) waits until idioms are known.
// RUN: tenon opt %s --passes=simplify,recognize-idioms --calls=all --emit=stablehlo | FileCheck %s
// RUN: tenon opt %s --passes=simplify,recognize-idioms,algebraic-simplify | FileCheck %s --check-prefix=LATE
// CHECK: "stablehlo.composite"({{.*}}) {{.*}}name = "tenon.attention"} : (tensor<2x1x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x1x4xf32>
// LATE: stablehlo.dot_general(%arg1, %arg0) {{.*}} : f32[2,6,1]
func.func public @main(%q: tensor<2x1x4xf32>, %k: tensor<2x6x4xf32>, %v: tensor<2x6x4xf32>) -> tensor<2x1x4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %p = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x1x4xf32>, tensor<2x6x4xf32>) -> tensor<2x1x6xf32>
  %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x1x6xf32>, tensor<f32>) -> tensor<2x1xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x1x6xf32>
  %d = stablehlo.subtract %p, %mb : tensor<2x1x6xf32>
  %e = stablehlo.exponential %d : tensor<2x1x6xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x1x6xf32>, tensor<f32>) -> tensor<2x1xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x1x6xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x1x6xf32>
  %y = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x1x6xf32>, tensor<2x6x4xf32>) -> tensor<2x1x4xf32>
  return %y : tensor<2x1x4xf32>
}
