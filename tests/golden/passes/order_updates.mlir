// Readers of an array come before the ops that change it, unless they need the result.
// RUN: tenon opt %s --passes=order-updates | FileCheck %s

// CHECK: %[[A:[0-9]+]] = stablehlo.abs
// CHECK: %[[S:[0-9]+]] = stablehlo.slice(%[[A]])
// CHECK-NEXT: stablehlo.dynamic_update_slice(%[[A]],
// CHECK-NEXT: stablehlo.negate(%[[S]])
// CHECK: return
func.func @main(%x: tensor<9xf32>, %y: tensor<2xf32>, %i: tensor<i32>) -> (tensor<9xf32>, tensor<3xf32>) {
  %a = stablehlo.abs %x : tensor<9xf32>
  %u = stablehlo.dynamic_update_slice %a, %y, %i : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
  %s = stablehlo.slice %a [2:5] : (tensor<9xf32>) -> tensor<3xf32>
  %n = stablehlo.negate %s : tensor<3xf32>
  return %u, %n : tensor<9xf32>, tensor<3xf32>
}

// Swapped elements: the second one is read before the first is stored.
// CHECK-LABEL: func.func @swap
// CHECK-NEXT: %[[A:[0-9]+]] = stablehlo.dynamic_slice(%arg0, %arg1)
// CHECK-NEXT: %[[B:[0-9]+]] = stablehlo.dynamic_slice(%arg0, %arg2)
// CHECK-NEXT: %[[U:[0-9]+]] = stablehlo.dynamic_update_slice(%arg0, %[[A]], %arg2)
// CHECK-NEXT: %[[V:[0-9]+]] = stablehlo.dynamic_update_slice(%[[U]], %[[B]], %arg1)
// CHECK-NEXT: return(%[[V]])
func.func @swap(%x: tensor<9xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<9xf32> {
  %a = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<9xf32>, tensor<i32>) -> tensor<1xf32>
  %u = stablehlo.dynamic_update_slice %x, %a, %j : (tensor<9xf32>, tensor<1xf32>, tensor<i32>) -> tensor<9xf32>
  %b = stablehlo.dynamic_slice %x, %j, sizes = [1] : (tensor<9xf32>, tensor<i32>) -> tensor<1xf32>
  %v = stablehlo.dynamic_update_slice %u, %b, %i : (tensor<9xf32>, tensor<1xf32>, tensor<i32>) -> tensor<9xf32>
  return %v : tensor<9xf32>
}

// Ops that also read the result stay after the update, also in a region; if two ops change one array,
// neither waits for the other.
// CHECK-LABEL: func.func @stay
// CHECK-NEXT: %[[U:[0-9]+]] = stablehlo.dynamic_update_slice(%arg0, %arg1
// CHECK-NEXT: stablehlo.if
// CHECK-NEXT: stablehlo.add(%arg0, %[[U]])
// CHECK: = stablehlo.dynamic_update_slice(%arg0, %arg1
func.func @stay(%x: tensor<9xf32>, %y: tensor<2xf32>, %i: tensor<i32>, %p: tensor<i1>) -> (tensor<9xf32>, tensor<9xf32>) {
  %u = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
  %r = "stablehlo.if"(%p) ({
    %s = stablehlo.add %x, %u : tensor<9xf32>
    stablehlo.return %s : tensor<9xf32>
  }, {
    stablehlo.return %x : tensor<9xf32>
  }) : (tensor<i1>) -> tensor<9xf32>
  %v = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<9xf32>, tensor<2xf32>, tensor<i32>) -> tensor<9xf32>
  %w = stablehlo.add %r, %v : tensor<9xf32>
  return %u, %w : tensor<9xf32>, tensor<9xf32>
}
