// Ops as library calls, by value, each with the kernels that compute the same result.
// RUN: tenon opt %s --emit=program --calls=all | FileCheck %s
// RUN: tenon opt %s --emit=program --calls=sort,scan | FileCheck %s --check-prefix=SOME
// RUN: tenon opt %s --emit=program | FileCheck %s --check-prefix=NONE
// NONE-NOT: lowered

// CHECK: contraction lhs_batch=[0] rhs_batch=[0] lhs_contracting=[2] rhs_contracting=[1] (%0, %1) -> ([[DOT:%[0-9]+]])
// CHECK-NEXT: lowered
// CHECK-NEXT: 0: launch @dot_general(%0, %1, [[DOT]])
// CHECK: convolution input=(0,3,[1,2]) kernel=(3,2,[0,1]) output=(0,3,[1,2]) strides=[2,1] padding_low=[1,1] padding_high=[0,1] input_dilation=[1,2] kernel_dilation=[1,1] reversed=[1] feature_groups=2
// CHECK: sort dimension=1 key=1 descending total_order
// CHECK-NEXT: lowered
// CHECK-NEXT: launch @sort
// CHECK: scan combiner=add dimension=1
// CHECK: scan combiner=maximum dimension=0 reverse
// CHECK-NOT: scan
// CHECK: launch @reduce_window
// CHECK: fft kind=real_forward lengths=[8]
// CHECK: composite vendor.negate version=2 mode="fast"
// CHECK-NEXT: lowered
// CHECK-NEXT: launch @negate

// SOME-NOT: contraction
// SOME: sort dimension=1 key=1 descending total_order
// SOME: scan combiner=add dimension=1
// SOME-NOT: fft kind
func.func private @negate(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.negate %x : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
func.func @main(%a: tensor<2x3x4xf32>, %b: tensor<2x4x6xf32>, %c: tensor<2x8x8x4xf32>, %k: tensor<3x3x2x6xf32>,
                %m: tensor<3x5xf32>, %i: tensor<3x5xi32>, %s: tensor<2x8xf32>)
    -> (tensor<2x3x6xf32>, tensor<2x4x15x6xf32>, tensor<3x5xi32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>,
        tensor<2x5xcomplex<f32>>, tensor<3x5xf32>) {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x4xf32>, tensor<2x4x6xf32>) -> tensor<2x3x6xf32>
  %1 = stablehlo.convolution(%c, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 0], [1, 1]], lhs_dilate = [1, 2], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<2x4x15x6xf32>
  %2:2 = "stablehlo.sort"(%i, %m) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<i32>, %q: tensor<i32>, %x: tensor<f32>, %y: tensor<f32>):
    %less = stablehlo.compare LT, %y, %x, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<3x5xi32>, tensor<3x5xf32>) -> (tensor<3x5xi32>, tensor<3x5xf32>)
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = "stablehlo.reduce_window"(%m, %zero) <{padding = dense<[[0, 0], [4, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 5>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %sum = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %4 = "stablehlo.reduce_window"(%m, %zero) <{padding = dense<[[0, 2], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %most = stablehlo.maximum %y, %x : tensor<f32>
    stablehlo.return %most : tensor<f32>
  }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  // Repeatedly added padding is not the init value of a scan.
  %other = stablehlo.constant dense<0.5> : tensor<f32>
  %none = "stablehlo.reduce_window"(%m, %other) <{padding = dense<[[0, 0], [4, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 5>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %sum = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %5 = stablehlo.fft %s, type = RFFT, length = [8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
  %6 = stablehlo.composite "vendor.negate" %m {composite_attributes = {mode = "fast"}, decomposition = @negate, version = 2 : i32} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0, %1, %2#0, %2#1, %3, %4, %none, %5, %6 : tensor<2x3x6xf32>, tensor<2x4x15x6xf32>, tensor<3x5xi32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<2x5xcomplex<f32>>, tensor<3x5xf32>
}
