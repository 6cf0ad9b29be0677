// On a device whose compiler makes vectors of a workgroup, rows of 8 elements and more are each
// reduced by one; where a logarithm follows for each row, those of 32 and more. Shorter rows, and
// those of other devices, are reduced by one lane each.
//
// RUN: tenon opt %s --device cpu --emit=kernels | FileCheck %s --check-prefix=CPU
// RUN: tenon opt %s --device template --emit=kernels | FileCheck %s --check-prefix=OTHER
//
// CPU: kernel @reduce_rows(%x0: in f32[1000,8]
// CPU-NEXT: reduce lanes(%{{[0-9]+}}: 8)
// CPU: kernel @reduce(%x0: in f32[1000,7]
// CPU: reduce serial(%{{[0-9]+}}: 7)
// CPU: kernel @{{[a-z_0-9]*}}rows{{[a-z_0-9]*}}(%x0: in f32[1000,31]
// CPU: reduce serial(%{{[0-9]+}}: 31)
// CPU: kernel @{{[a-z_0-9]*}}rows{{[a-z_0-9]*}}(%x0: in f32[1000,32]
// CPU: reduce lanes(%{{[0-9]+}}: 32)
// OTHER-NOT: reduce lanes
func.func @main(%a: tensor<1000x8xf32>, %b: tensor<1000x7xf32>, %c: tensor<1000x31xf32>, %d: tensor<1000x32xf32>)
    -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1000x8xf32>, tensor<f32>) -> tensor<1000xf32>
  %1 = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1000x7xf32>, tensor<f32>) -> tensor<1000xf32>
  %2 = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1000x31xf32>, tensor<f32>) -> tensor<1000xf32>
  %3 = stablehlo.log %2 : tensor<1000xf32>
  %4 = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1000x32xf32>, tensor<f32>) -> tensor<1000xf32>
  %5 = stablehlo.log %4 : tensor<1000xf32>
  return %0, %1, %3, %5 : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>
}
