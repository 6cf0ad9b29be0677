// What nothing uses goes, with what only it used; calls with effects stay.
// RUN: tenon opt %s --passes=dce | FileCheck %s

// CHECK: func.func @main(%arg0: f32[2]) -> (f32[2]) {
// CHECK-NEXT: stablehlo.custom_call
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  %1 = stablehlo.negate %0 : tensor<2xf32>
  stablehlo.custom_call @log(%x) {has_side_effect = true} : (tensor<2xf32>) -> ()
  return %x : tensor<2xf32>
}
