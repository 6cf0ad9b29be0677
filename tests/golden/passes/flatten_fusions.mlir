// Nested fusions, at any depth and in regions, are replaced by their ops.
// RUN: tenon opt %s --passes=flatten-fusions | FileCheck %s

// CHECK: %[[OUTER:[0-9]+]]:2 = tenon.fusion(%arg0)
// CHECK-NEXT: ^bb0(%[[X:arg[0-9]+]]: f32[4]):
// CHECK-NEXT: %[[N:[0-9]+]] = stablehlo.negate(%[[X]]) : f32[4]
// CHECK-NEXT: %[[E:[0-9]+]] = stablehlo.exponential(%[[N]]) : f32[4]
// CHECK-NEXT: %[[A:[0-9]+]] = stablehlo.add(%[[E]], %[[X]]) : f32[4]
// CHECK-NEXT: stablehlo.return(%[[A]], %[[E]])
// CHECK: stablehlo.return(%[[OUTER]]#0, %[[OUTER]]#1)
hlo_module @m {
  func.func @main(%0: f32[4]) -> (f32[4], f32[4]) {
    %1:2 = tenon.fusion(%0) ({
    ^bb0(%x: f32[4]):
      %2:2 = tenon.fusion(%x) ({
      ^bb0(%y: f32[4]):
        %3 = tenon.fusion(%y) ({
        ^bb0(%z: f32[4]):
          %4 = stablehlo.negate(%z) : f32[4]
          stablehlo.return(%4)
        }) : f32[4]
        %5 = stablehlo.exponential(%3) : f32[4]
        %6 = stablehlo.add(%5, %y) : f32[4]
        stablehlo.return(%6, %5)
      }) : f32[4], f32[4]
      stablehlo.return(%2#0, %2#1)
    }) : f32[4], f32[4]
    stablehlo.return(%1#0, %1#1)
  }
}
