// The error function and its complement are functions of the kernel IR, by name or as a composite.
// RUN: tenon opt %s --emit=kernels | FileCheck %s

// CHECK: kernel @erf(
// CHECK: %[[X:[0-9]+]] = load %x0
// CHECK-NEXT: %{{[0-9]+}} = erf %[[X]] : f32
// CHECK: kernel @erfc
// CHECK: erfc %{{[0-9]+}} : f64
// CHECK-NOT: exp
func.func @main(%x: tensor<12xf32>, %y: tensor<12xf64>) -> (tensor<12xf32>, tensor<12xf64>) {
  %0 = stablehlo.composite "chlo.erf" %x {decomposition = @other} : (tensor<12xf32>) -> tensor<12xf32>
  %1 = chlo.erfc %y : tensor<12xf64> -> tensor<12xf64>
  return %0, %1 : tensor<12xf32>, tensor<12xf64>
}
func.func private @other(%x: tensor<12xf32>) -> tensor<12xf32> {
  %0 = stablehlo.exponential %x : tensor<12xf32>
  return %0 : tensor<12xf32>
}
