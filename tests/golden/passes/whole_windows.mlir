// Scatters of a program for XLA drop the whole of a window that is partly out of range.
// RUN: tenon opt %s --passes whole-windows | FileCheck %s
// RUN: tenon run %s | FileCheck %s --check-prefix=SPEC
// RUN: tenon opt %s --passes whole-windows | tenon run - | FileCheck %s --check-prefix=WHOLE

// CHECK: stablehlo.scatter
// CHECK-SAME: whole_windows = true
// SPEC: [0, 0, 0, 1]
// WHOLE: [0, 0, 0, 0]
func.func @main() -> tensor<4xf32> {
  %x = stablehlo.constant dense<0.0> : tensor<4xf32>
  %at = stablehlo.constant dense<3> : tensor<1x1xi32>
  %u = stablehlo.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %r = "stablehlo.scatter"(%x, %at, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>, tensor<1x1xi32>, tensor<1x2xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
