// A reduction down short columns becomes two, where the device fills no vectors with them. Others
// stay: hlo/passes/normalize/short_rows_test.cpp.
// RUN: tenon opt %s --device cpu --emit=kernels | FileCheck %s --check-prefix=CPU
// RUN: tenon opt %s --device gpu-sim --emit=kernels | FileCheck %s --check-prefix=GPU

// CPU: (%x0: in f32[8,64,48], %y: out f32[8,48])
// CPU: (%x0: in f32[8,16,3], %y: out f32[8,3])
// GPU: in f32[8,1024,3]
func.func @main(%x: tensor<8x1024x3xf32>) -> tensor<8x3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x1024x3xf32>, tensor<f32>) -> tensor<8x3xf32>
  return %r : tensor<8x3xf32>
}
