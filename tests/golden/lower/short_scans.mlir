// Rows of a few elements are scanned too: by the lanes of a workgroup on the CPU, by one lane each
// on a device whose units run one lane. A GPU's lanes combine each prefix.
//
// RUN: tenon opt %s --device cpu --emit=kernels | FileCheck %s --check-prefix=CPU
// RUN: tenon opt %s --device interp --emit=kernels | FileCheck %s --check-prefix=INTERP
// RUN: tenon opt %s --device gpu-sim --emit=kernels | FileCheck %s --check-prefix=GPU
//
// CPU: kernel @reduce_window_scan{{.*}}grid(%{{[0-9]+}}: 64)
// CPU-NEXT: scan lanes(%{{[0-9]+}}: 7)
// INTERP: kernel @reduce_window_scan
// INTERP: scan serial
// GPU: kernel @reduce_window(
// GPU: reduce serial(%{{[0-9]+}}: 1, %{{[0-9]+}}: 7)
func.func @main(%x: tensor<64x7xi32>) -> tensor<64x7xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %sums = "stablehlo.reduce_window"(%x, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %sum = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %sum : tensor<i32>
  }) {window_dimensions = array<i64: 1, 7>, padding = dense<[[0, 0], [6, 0]]> : tensor<2x2xi64>}
      : (tensor<64x7xi32>, tensor<i32>) -> tensor<64x7xi32>
  return %sums : tensor<64x7xi32>
}
