// The ops of an idiom become a composite if the target takes it.
// RUN: tenon opt %s --passes=inline-calls,simplify,recognize-idioms --calls=all --emit=stablehlo | FileCheck %s
// RUN: tenon opt %s --passes=inline-calls,simplify,recognize-idioms --calls=tenon.softmax --emit=stablehlo | FileCheck %s --check-prefix=PART
// RUN: tenon opt %s --passes=inline-calls,simplify,recognize-idioms --emit=stablehlo | FileCheck %s --check-prefix=NONE
// RUN: not tenon opt %s --passes=recognize-idioms --calls=softmax 2>&1 | FileCheck %s --check-prefix=WRONG
// NONE-NOT: composite
// PART-NOT: tenon.attention
// PART: name = "tenon.softmax"
// PART: name = "tenon.softmax"
// WRONG: there is no library call 'softmax'

// jax.nn.softmax(q @ k.T * 0.125) @ v as JAX writes it: reductions keep their dimension, and the
// maximum is compared with -inf once more.
// CHECK-LABEL: func.func public @main
// CHECK: %[[Y:.*]] = "stablehlo.composite"({{.*}}) {composite_attributes = {{.*}}scale = 0.125 : f64{{.*}}, decomposition = @tenon.attention.0, name = "tenon.attention"}
// CHECK: %[[Z:.*]] = "stablehlo.composite"({{.*}}) {composite_attributes = {dimension = 1 : i64}, decomposition = @tenon.softmax.0, name = "tenon.softmax"} : (tensor<3x7xbf16>) -> tensor<3x7xbf16>
// CHECK: return %[[Y]], %[[Z]]
// CHECK: func.func private @tenon.{{attention|softmax}}.0
// CHECK: stablehlo.exponential
func.func public @main(%q: tensor<4x64xf32>, %k: tensor<6x64xf32>, %v: tensor<6x64xf32>, %x: tensor<3x7xbf16>) -> (tensor<4x64xf32>, tensor<3x7xbf16>) {
  %scale = stablehlo.constant dense<1.250000e-01> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %p = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<4x64xf32>, tensor<6x64xf32>) -> tensor<4x6xf32>
  %sb = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
  %s = stablehlo.multiply %p, %sb : tensor<4x6xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %lb = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %mm = stablehlo.maximum %lb, %m : tensor<4xf32>
  %mk = stablehlo.broadcast_in_dim %mm, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
  %mb = stablehlo.broadcast_in_dim %mk, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
  %d = stablehlo.subtract %s, %mb : tensor<4x6xf32>
  %e = stablehlo.exponential %d : tensor<4x6xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %tk = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
  %tb = stablehlo.broadcast_in_dim %tk, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
  %w = stablehlo.divide %e, %tb : tensor<4x6xf32>
  %y = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x64xf32>) -> tensor<4x64xf32>
  // Sums of bf16 are computed in f32.
  %blow = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %bm = stablehlo.reduce(%x init: %blow) applies stablehlo.maximum across dimensions = [1] : (tensor<3x7xbf16>, tensor<bf16>) -> tensor<3xbf16>
  %bb = stablehlo.broadcast_in_dim %bm, dims = [0] : (tensor<3xbf16>) -> tensor<3x7xbf16>
  %bd = stablehlo.subtract %x, %bb : tensor<3x7xbf16>
  %be = stablehlo.exponential %bd : tensor<3x7xbf16>
  %wide = stablehlo.convert %be : (tensor<3x7xbf16>) -> tensor<3x7xf32>
  %bt = stablehlo.reduce(%wide init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x7xf32>, tensor<f32>) -> tensor<3xf32>
  %btk = stablehlo.broadcast_in_dim %bt, dims = [0] : (tensor<3xf32>) -> tensor<3x1xf32>
  %narrow = stablehlo.convert %btk : (tensor<3x1xf32>) -> tensor<3x1xbf16>
  %btb = stablehlo.broadcast_in_dim %narrow, dims = [0, 1] : (tensor<3x1xbf16>) -> tensor<3x7xbf16>
  %z = stablehlo.divide %be, %btb : tensor<3x7xbf16>
  return %y, %z : tensor<4x64xf32>, tensor<3x7xbf16>
}
