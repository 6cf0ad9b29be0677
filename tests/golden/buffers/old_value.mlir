// A value that is read after its update keeps its memory: the whole result is written to other memory.
// RUN: tenon opt %s --passes=inline-calls,decompose,flatten-fusions,fusion,dce --emit=program | FileCheck %s

// CHECK: program @old_value
// CHECK: entry
// CHECK: launch @sine(%0, %[[S:[0-9]+]])
// CHECK-NEXT: launch @dynamic_update_slice(%[[S]], %1, %2, %[[R:[0-9]+]])
// CHECK-NEXT: results %[[R]] %[[S]]
func.func @old_value(%x: tensor<8x8xf32>, %row: tensor<1x8xf32>, %i: tensor<i32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %s = stablehlo.sine %x : tensor<8x8xf32>
  %u = stablehlo.dynamic_update_slice %s, %row, %i, %i : (tensor<8x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
  return %u, %s : tensor<8x8xf32>, tensor<8x8xf32>
}
