// A scatter combines into an operand without later uses, without a copy.
// RUN: tenon opt %s --emit=program | FileCheck %s

// CHECK: program @scatter
// CHECK: launch @sine(%0, %[[R:[0-9]+]])
// CHECK-NEXT: launch @scatter({{.*}}, %[[R]])
// CHECK-NEXT: results %[[R]]
func.func @scatter(%x: tensor<8xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  %1 = "stablehlo.scatter"(%0, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
