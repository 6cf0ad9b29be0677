// A long window that moves by one element becomes two scans of blocks. Others stay: hlo/passes/simplify/sliding_windows_test.cpp.
// RUN: tenon opt %s --passes=sliding-windows | FileCheck %s

// 101 results, and the elements behind the last: 4 blocks of 40.
// CHECK-LABEL: func.func @sum_of_integers(
// CHECK: %[[WHOLE:[0-9]+]] = stablehlo.pad(%arg0, %0) {edge_padding_high = [20], edge_padding_low = [0]
// CHECK: %[[ROWS:[0-9]+]] = stablehlo.reshape(%[[WHOLE]]) : s32[4,40]
// CHECK: %[[ENDS:[0-9]+]] = stablehlo.reduce_window(%[[ROWS]], %0) {padding = {{\[\[}}0, 0], [0, 39]], window_dimensions = [1, 40]}
// CHECK: %[[BEFORE:[0-9]+]] = stablehlo.pad(%[[ROWS]], %0) {edge_padding_high = [0, -1], edge_padding_low = [0, 1]
// CHECK: %[[BEGINNINGS:[0-9]+]] = stablehlo.reduce_window(%[[BEFORE]], %0) {padding = {{\[\[}}0, 0], [39, 0]], window_dimensions = [1, 40]}
// CHECK: stablehlo.reshape(%[[ENDS]]) : s32[160]
// CHECK: %[[X:[0-9]+]] = stablehlo.slice({{.*}} {limit_indices = [101], start_indices = [0]
// CHECK: stablehlo.reshape(%[[BEGINNINGS]]) : s32[160]
// CHECK: %[[Y:[0-9]+]] = stablehlo.slice({{.*}} {limit_indices = [141], start_indices = [40]
// CHECK: %[[R:[0-9]+]] = stablehlo.add(%[[X]], %[[Y]]) : s32[101]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @sum_of_integers(%x: tensor<140xi32>) -> tensor<101xi32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 40>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<140xi32>, tensor<i32>) -> tensor<101xi32>
  return %r : tensor<101xi32>
}
