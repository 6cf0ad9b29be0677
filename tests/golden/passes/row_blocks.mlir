// RUN: tenon opt %s --passes=row-blocks | FileCheck %s
// A large array between products goes through a loop, a block of its rows at a time. What goes
// along rows is stored at their place, what goes down columns is added.

// CHECK-LABEL: func.func public @main
// CHECK: %[[LOOP:[0-9]+]]:3 = stablehlo.while(
// CHECK: stablehlo.compare({{.*}}comparison_direction = LT
// CHECK: ^bb0(%[[ROW:arg[0-9]+]]: s32[], %[[Y:arg[0-9]+]]: f32[4096,8], %[[G:arg[0-9]+]]: f32[1024,4]):
// CHECK: %[[A:[0-9]+]] = stablehlo.dynamic_slice(%arg0, %[[ROW]], %{{[0-9]+}}) {slice_sizes = [512, 4]}
// CHECK: stablehlo.dot_general(%[[A]], %arg1) {{.*}} : f32[512,1024]
// CHECK: stablehlo.exponential
// CHECK: %[[YB:[0-9]+]] = stablehlo.dot_general({{.*}}, %arg2) {{.*}} : f32[512,8]
// CHECK: %[[GB:[0-9]+]] = stablehlo.dot_general({{.*}}, %[[A]]) {{.*}} : f32[1024,4]
// CHECK-DAG: stablehlo.dynamic_update_slice(%[[Y]], %[[YB]], %[[ROW]], %{{[0-9]+}})
// CHECK-DAG: stablehlo.add(%[[G]], %[[GB]])
// CHECK: stablehlo.return(%[[LOOP]]#1, %[[LOOP]]#2)
func.func public @main(%a: tensor<4096x4xf32>, %b: tensor<1024x4xf32>, %v: tensor<1024x8xf32>) -> (tensor<4096x8xf32>, tensor<1024x4xf32>) {
  %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<4096x4xf32>, tensor<1024x4xf32>) -> tensor<4096x1024xf32>
  %e = stablehlo.exponential %s : tensor<4096x1024xf32>
  %y = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<4096x1024xf32>, tensor<1024x8xf32>) -> tensor<4096x8xf32>
  %g = stablehlo.dot_general %e, %a, contracting_dims = [0] x [0] : (tensor<4096x1024xf32>, tensor<4096x4xf32>) -> tensor<1024x4xf32>
  return %y, %g : tensor<4096x8xf32>, tensor<1024x4xf32>
}
