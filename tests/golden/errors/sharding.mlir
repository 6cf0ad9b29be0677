// A sharding that needs partitioning is refused, with the op and the sharding.
// RUN: not tenon opt %s 2>&1 | FileCheck %s

// CHECK: sharding.mlir:8:10: error: sdy.sharding_constraint: sharding <@mesh, [{"x"}, {}]> needs partitioning over axis "x" of 2 devices; programs run on one device
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
