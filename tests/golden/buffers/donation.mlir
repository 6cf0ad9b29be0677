// A donated argument becomes a result in place: the copy that states this does nothing if the caller
// donates the argument. An argument that is still read when the result is written does not.
// RUN: tenon opt %s --passes=inline-calls,decompose,simplify,flatten-fusions,fusion,dce --emit=program | FileCheck %s

// CHECK: %[[W:[0-9]+]]: f32[64,64] parameter 0
// CHECK: %[[G:[0-9]+]]: f32[64,64] parameter 1
// CHECK: %[[X:[0-9]+]]: f32[8,8] parameter 2
// CHECK: %[[R:[0-9]+]]: f32[64,64] result 0
// CHECK: %[[S:[0-9]+]]: f32[8,8] result 1
// CHECK: entry
// CHECK-NEXT: copy %[[R]] = %[[W]] // donated argument 0
// CHECK-NEXT: launch @elements(%[[G]], %[[R]], %[[R]])
// CHECK-NEXT: launch @dot_general_tiles(%[[X]], %[[S]])
// CHECK-NEXT: results %[[R]] %[[S]]
func.func @main(%w: tensor<64x64xf32> {tf.aliasing_output = 0 : i32}, %g: tensor<64x64xf32>,
                %x: tensor<8x8xf32> {jax.buffer_donor = true}) -> (tensor<64x64xf32>, tensor<8x8xf32>) {
  %rate = stablehlo.constant dense<0.1> : tensor<64x64xf32>
  %step = stablehlo.multiply %g, %rate : tensor<64x64xf32>
  %next = stablehlo.subtract %w, %step : tensor<64x64xf32>
  %square = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %next, %square : tensor<64x64xf32>, tensor<8x8xf32>
}
