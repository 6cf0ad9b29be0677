// The place of the greatest element of short rows of bf16: elements are converted once, and one compare with a test for a NaN decides between a kept
// element and the next, whose place is greater. Long rows are shared out, so that their combination may take either side first.
// RUN: tenon opt %s --emit=kernels | FileCheck %s

// CHECK: kernel @{{.*}}(%x0: in bf16[400,12]
// CHECK: reduce serial(%[[I:[0-9]+]]: 12) init({{.*}}, 0) : f32, s32 {
// CHECK: convert {{.*}} : bf16 -> f32
// CHECK: combine(%[[A:[0-9]+]], %[[P:[0-9]+]], %[[B:[0-9]+]], %[[Q:[0-9]+]])
// CHECK-NEXT: %[[GE:[0-9]+]] = ge %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[NAN:[0-9]+]] = ne %[[A]], %[[A]] : f32
// CHECK-NEXT: %[[KEEP:[0-9]+]] = or %[[GE]], %[[NAN]] : pred
// CHECK-NEXT: %[[V:[0-9]+]] = select %[[KEEP]], %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[R:[0-9]+]] = select %[[KEEP]], %[[P]], %[[Q]] : s32
// CHECK-NEXT: yield %[[V]], %[[R]]
// CHECK: kernel @{{.*}}(%x0: in bf16[400,1000]
// CHECK: commutative {
func.func @main(%x: tensor<400x12xbf16>, %y: tensor<400x1000xbf16>) -> (tensor<400xi32>, tensor<400xi32>) {
  %low = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %i = stablehlo.iota dim = 1 : tensor<400x12xi32>
  %0:2 = stablehlo.reduce(%x init: %low), (%i init: %none) across dimensions = [1] : (tensor<400x12xbf16>, tensor<400x12xi32>, tensor<bf16>, tensor<i32>) -> (tensor<400xbf16>, tensor<400xi32>)
   reducer(%a: tensor<bf16>, %c: tensor<bf16>) (%p: tensor<i32>, %q: tensor<i32>) {
    %g = stablehlo.compare GT, %a, %c : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %t = stablehlo.or %g, %n : tensor<i1>
    %e = stablehlo.compare EQ, %a, %c : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %l = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %f = stablehlo.and %e, %l : tensor<i1>
    %k = stablehlo.or %t, %f : tensor<i1>
    %v = stablehlo.select %t, %a, %c : tensor<i1>, tensor<bf16>
    %w = stablehlo.select %k, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<bf16>, tensor<i32>
  }
  %j = stablehlo.iota dim = 1 : tensor<400x1000xi32>
  %1:2 = stablehlo.reduce(%y init: %low), (%j init: %none) across dimensions = [1] : (tensor<400x1000xbf16>, tensor<400x1000xi32>, tensor<bf16>, tensor<i32>) -> (tensor<400xbf16>, tensor<400xi32>)
   reducer(%a: tensor<bf16>, %c: tensor<bf16>) (%p: tensor<i32>, %q: tensor<i32>) {
    %g = stablehlo.compare GT, %a, %c : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %t = stablehlo.or %g, %n : tensor<i1>
    %e = stablehlo.compare EQ, %a, %c : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
    %l = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %f = stablehlo.and %e, %l : tensor<i1>
    %k = stablehlo.or %t, %f : tensor<i1>
    %v = stablehlo.select %t, %a, %c : tensor<i1>, tensor<bf16>
    %w = stablehlo.select %k, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<bf16>, tensor<i32>
  }
  return %0#1, %1#1 : tensor<400xi32>, tensor<400xi32>
}
