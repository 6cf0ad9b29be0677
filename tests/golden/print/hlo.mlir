// One form for every op, short types, no default attributes.
// RUN: tenon opt %s --emit=hlo | FileCheck %s

// CHECK: hlo_module @window attributes {mhlo.num_replicas = 1 : i32} {
module @window attributes {mhlo.num_replicas = 1 : i32} {
  // CHECK-NEXT: func.func @main(%arg0: bf16[1,8,8,3], %arg1: bf16[3,3,3,4]) -> (bf16[1,8,8,4]) {
  func.func @main(%x: tensor<1x8x8x3xbf16>, %k: tensor<3x3x3x4xbf16>) -> tensor<1x8x8x4xbf16> {
    // CHECK-NEXT: %0 = stablehlo.convolution(%arg0, %arg1) {batch_group_count = 1, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1, padding = {{\[\[}}1, 1], [1, 1]]} : bf16[1,8,8,4]
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], reverse = [0, 0]}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
        : (tensor<1x8x8x3xbf16>, tensor<3x3x3x4xbf16>) -> tensor<1x8x8x4xbf16>
    // CHECK-NEXT: stablehlo.return(%0)
    return %0 : tensor<1x8x8x4xbf16>
  }
}
