// Two attentions of which one has a mask of its own that follows from the other's: both are kernels that keep no scores. What both use is
// an array, as it is no part of either.
// RUN: tenon opt %s --device cpu --emit=program | FileCheck %s

// CHECK: launch @attention_blocks(
// CHECK: launch @attention_blocks(
// CHECK: results
func.func @main(%q: tensor<4x512x32xf32>, %k: tensor<4x512x32xf32>, %v: tensor<4x512x32xf32>) -> tensor<4x512x32xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %far = stablehlo.constant dense<-1.0e9> : tensor<4x512x512xf32>
  %n = stablehlo.constant dense<64> : tensor<512x512xi32>
  %i = stablehlo.iota dim = 0 : tensor<512x512xi32>
  %j = stablehlo.iota dim = 1 : tensor<512x512xi32>
  %causal = stablehlo.compare GE, %i, %j : (tensor<512x512xi32>, tensor<512x512xi32>) -> tensor<512x512xi1>
  %d = stablehlo.subtract %i, %j : tensor<512x512xi32>
  %near = stablehlo.compare LT, %d, %n : (tensor<512x512xi32>, tensor<512x512xi32>) -> tensor<512x512xi1>
  %local = stablehlo.and %causal, %near : tensor<512x512xi1>
  %y = func.call @att(%q, %k, %v, %local) : (tensor<4x512x32xf32>, tensor<4x512x32xf32>, tensor<4x512x32xf32>, tensor<512x512xi1>) -> tensor<4x512x32xf32>
  %z = func.call @att(%y, %k, %v, %causal) : (tensor<4x512x32xf32>, tensor<4x512x32xf32>, tensor<4x512x32xf32>, tensor<512x512xi1>) -> tensor<4x512x32xf32>
  return %z : tensor<4x512x32xf32>
}
func.func private @att(%q: tensor<4x512x32xf32>, %k: tensor<4x512x32xf32>, %v: tensor<4x512x32xf32>, %mask: tensor<512x512xi1>) -> tensor<4x512x32xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %far = stablehlo.constant dense<-1.0e9> : tensor<4x512x512xf32>
  %p = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x512x32xf32>, tensor<4x512x32xf32>) -> tensor<4x512x512xf32>
  %w = stablehlo.broadcast_in_dim %mask, dims = [1, 2] : (tensor<512x512xi1>) -> tensor<4x512x512xi1>
  %s = stablehlo.select %w, %p, %far : tensor<4x512x512xi1>, tensor<4x512x512xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<4x512x512xf32>, tensor<f32>) -> tensor<4x512xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x512xf32>) -> tensor<4x512x512xf32>
  %c = stablehlo.subtract %s, %mb : tensor<4x512x512xf32>
  %e = stablehlo.exponential %c : tensor<4x512x512xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x512x512xf32>, tensor<f32>) -> tensor<4x512xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<4x512xf32>) -> tensor<4x512x512xf32>
  %x = stablehlo.divide %e, %tb : tensor<4x512x512xf32>
  %o = stablehlo.dot_general %x, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x512x512xf32>, tensor<4x512x32xf32>) -> tensor<4x512x32xf32>
  return %o : tensor<4x512x32xf32>
}
