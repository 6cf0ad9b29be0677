// A long window that moves by one element becomes two scans of blocks; windows that are short, jump, have gaps, or begin
// with more than an identity stay.
// RUN: tenon opt %s --passes=sliding-windows | FileCheck %s
// RUN: tenon run %s --function=sum_of_integers --arg 0=random:1 --device interp --quiet
// RUN: tenon opt %s --passes=sliding-windows,sliding-windows | FileCheck %s

// Ten results and more a block of 40: 4 blocks, of which the last is padding.
// CHECK-LABEL: func.func @sum_of_integers(
// CHECK: stablehlo.pad({{.*}}high = [20]{{.*}}low = [0]{{.*}} : {{.*}} -> tensor<160xi32>
// CHECK: stablehlo.reshape({{.*}} -> tensor<4x40xi32>
// CHECK: stablehlo.reduce_window({{.*}}padding = {{.*}}0, 39{{.*}}window_dimensions = [1, 40]
// CHECK: stablehlo.pad({{.*}}high = [0, -1]{{.*}}low = [0, 1]
// CHECK: stablehlo.reduce_window({{.*}}padding = {{.*}}39, 0{{.*}}window_dimensions = [1, 40]
// CHECK: stablehlo.slice({{.*}}limit_indices = [101]{{.*}}start_indices = [0]
// CHECK: stablehlo.slice({{.*}}limit_indices = [141]{{.*}}start_indices = [40]
// CHECK: stablehlo.add({{.*}} -> tensor<101xi32>
// CHECK-NEXT: stablehlo.return
func.func @sum_of_integers(%x: tensor<140xi32>) -> tensor<101xi32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 40>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<140xi32>, tensor<i32>) -> tensor<101xi32>
  return %r : tensor<101xi32>
}
