// A refined op keeps its stated scale, which its operands do not determine.
// RUN: tenon opt %s --shape 0=4 --emit=stablehlo | FileCheck %s

// CHECK: stablehlo.add %{{.*}}, %{{.*}} : (tensor<4x!quant.uniform<i8:f32, {{0?}}.5{{0*}}:3>>, {{.*}}) -> tensor<4x!quant.uniform<i8:f32, {{0?}}.25{{0*}}:1>>
func.func @main(%i: tensor<?xi8>) -> tensor<?xi8> {
  %x = stablehlo.bitcast_convert %i : (tensor<?xi8>) -> tensor<?x!quant.uniform<i8:f32, 0.5:3>>
  %r = stablehlo.add %x, %x : (tensor<?x!quant.uniform<i8:f32, 0.5:3>>, tensor<?x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<?x!quant.uniform<i8:f32, 0.25:1>>
  %o = stablehlo.bitcast_convert %r : (tensor<?x!quant.uniform<i8:f32, 0.25:1>>) -> tensor<?xi8>
  return %o : tensor<?xi8>
}
