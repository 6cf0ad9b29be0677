// A product followed by a bias and a relu: tiles of both factors in scratch, private accumulators,
// the other ops when results are stored.
// RUN: tenon opt %s --emit=kernels | FileCheck %s

// CHECK: kernel @dense_tiles({{.*}}) index s32 grid(%[[R:[0-9]+]]: 2, %[[C:[0-9]+]]: 1)
// CHECK: scratch %a : bf16[64,16]
// CHECK: scratch %b : bf16[16,64]
// CHECK: private %acc : f32[16,16,4,4] per lanes 2
// CHECK: for %[[K:[0-9]+]] = (0, 256, 16)
// CHECK: copy box(64, 16) %a[0, 0] by(0, 1) = %x{{.*}} by(0, 1) pad 0.0
// CHECK: copy box(16, 64) %b[0, 0] by(0, 1) = %x{{.*}} by(0, 1) pad 0.0
// CHECK: contract box(64, 64, 16) %acc[0, 0] += %a[0, 0] * %b[0, 0]
// CHECK: lanes(
// CHECK: load %acc
// CHECK: add
// CHECK: max
// CHECK: store
func.func @main(%x: tensor<128x256xbf16>, %w: tensor<256x64xbf16>, %b: tensor<64xf32>) -> tensor<128x64xf32> {
  %0 = "tenon.fusion"(%x, %w, %b) <{fusion_kind = "dense"}> ({
  ^bb0(%l: tensor<128x256xbf16>, %r: tensor<256x64xbf16>, %c: tensor<64xf32>):
    %d = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0] : (tensor<128x256xbf16>, tensor<256x64xbf16>) -> tensor<128x64xf32>
    %cb = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<64xf32>) -> tensor<128x64xf32>
    %s = stablehlo.add %d, %cb : tensor<128x64xf32>
    %z = stablehlo.constant dense<0.0> : tensor<128x64xf32>
    %y = stablehlo.maximum %s, %z : tensor<128x64xf32>
    stablehlo.return %y : tensor<128x64xf32>
  }) : (tensor<128x256xbf16>, tensor<256x64xbf16>, tensor<64xf32>) -> tensor<128x64xf32>
  return %0 : tensor<128x64xf32>
}
