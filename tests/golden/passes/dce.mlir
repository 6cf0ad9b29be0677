// Unused ops are removed, with the ops that only they used; calls with effects stay, and collectives, in which
// other processes take part.
// RUN: tenon opt %s --passes=dce | FileCheck %s

// CHECK: func.func @main(%arg0: f32[2]) -> (f32[2]) {
// CHECK-NEXT: stablehlo.custom_call
// CHECK-NEXT: stablehlo.all_reduce
// CHECK: }
// CHECK-NOT: partition_id
// CHECK: stablehlo.return(%arg0)
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  %1 = stablehlo.negate %0 : tensor<2xf32>
  stablehlo.custom_call @log(%x) {has_side_effect = true} : (tensor<2xf32>) -> ()
  %2 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
  %3 = stablehlo.partition_id : tensor<ui32>
  return %x : tensor<2xf32>
}
