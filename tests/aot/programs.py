"""Programs for tests of `tenon aot`, as StableHLO text."""

# Name and text.
PROGRAMS = [
    ("elementwise", """func.func @main(%x: tensor<3x37xf32>, %y: tensor<3x37xf32>) -> (tensor<3x37xf32>, tensor<3x37xf32>) {
  %0 = stablehlo.tanh %x : tensor<3x37xf32>
  %1 = stablehlo.exponential %y : tensor<3x37xf32>
  %2 = stablehlo.add %0, %1 : tensor<3x37xf32>
  %3 = stablehlo.sine %2 : tensor<3x37xf32>
  return %2, %3 : tensor<3x37xf32>, tensor<3x37xf32>
}"""),
    ("softmax", """func.func @main(%x: tensor<5x61xf32>) -> tensor<5x61xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<5x61xf32>, tensor<f32>) -> tensor<5xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<5xf32>) -> tensor<5x61xf32>
  %d = stablehlo.subtract %x, %mb : tensor<5x61xf32>
  %e = stablehlo.exponential %d : tensor<5x61xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<5x61xf32>, tensor<f32>) -> tensor<5xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<5xf32>) -> tensor<5x61xf32>
  %r = stablehlo.divide %e, %sb : tensor<5x61xf32>
  return %r : tensor<5x61xf32>
}"""),
    ("products", """func.func @main(%x: tensor<17x40xf32>, %w: tensor<40x33xf32>, %b: tensor<33xf32>) -> (tensor<17x33xf32>, tensor<17x17xf64>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<17x40xf32>, tensor<40x33xf32>) -> tensor<17x33xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<33xf32>) -> tensor<17x33xf32>
  %2 = stablehlo.add %0, %1 : tensor<17x33xf32>
  %3 = stablehlo.convert %2 : (tensor<17x33xf32>) -> tensor<17x33xf64>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [1] : (tensor<17x33xf64>, tensor<17x33xf64>) -> tensor<17x17xf64>
  return %2, %4 : tensor<17x33xf32>, tensor<17x17xf64>
}"""),
    ("large_product", """func.func @main(%x: tensor<700x300xf32>, %w: tensor<300x900xf32>) -> tensor<700x900xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<700x300xf32>, tensor<300x900xf32>) -> tensor<700x900xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<700x900xf32>
  %1 = stablehlo.maximum %0, %zero : tensor<700x900xf32>
  return %1 : tensor<700x900xf32>
}"""),
    ("narrow", """func.func @main(%x: tensor<9x24xf32>, %y: tensor<24x8xf32>) -> (tensor<9x8xbf16>, tensor<9x8xf16>, tensor<9x24xi4>, tensor<9x24xi1>) {
  %0 = stablehlo.convert %x : (tensor<9x24xf32>) -> tensor<9x24xbf16>
  %1 = stablehlo.convert %y : (tensor<24x8xf32>) -> tensor<24x8xbf16>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<9x24xbf16>, tensor<24x8xbf16>) -> tensor<9x8xbf16>
  %3 = stablehlo.convert %x : (tensor<9x24xf32>) -> tensor<9x24xf16>
  %4 = stablehlo.convert %y : (tensor<24x8xf32>) -> tensor<24x8xf16>
  %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<9x24xf16>, tensor<24x8xf16>) -> tensor<9x8xf16>
  %four = stablehlo.constant dense<4.0> : tensor<9x24xf32>
  %6 = stablehlo.multiply %x, %four : tensor<9x24xf32>
  %7 = stablehlo.convert %6 : (tensor<9x24xf32>) -> tensor<9x24xi4>
  %8 = stablehlo.compare GT, %6, %x : (tensor<9x24xf32>, tensor<9x24xf32>) -> tensor<9x24xi1>
  return %2, %5, %7, %8 : tensor<9x8xbf16>, tensor<9x8xf16>, tensor<9x24xi4>, tensor<9x24xi1>
}"""),
    ("complex_numbers", """func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xcomplex<f32>>, tensor<64xf32>) {
  %0 = stablehlo.complex %x, %y : tensor<64xcomplex<f32>>
  %1 = stablehlo.fft %0, type = FFT, length = [64] : (tensor<64xcomplex<f32>>) -> tensor<64xcomplex<f32>>
  %2 = stablehlo.abs %1 : (tensor<64xcomplex<f32>>) -> tensor<64xf32>
  return %1, %2 : tensor<64xcomplex<f32>>, tensor<64xf32>
}"""),
    ("sorted", """func.func @main(%x: tensor<1000xf32>, %i: tensor<1000xi32>) -> (tensor<1000xf32>, tensor<1000xi32>) {
  %0:2 = "stablehlo.sort"(%x, %i) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<1000xf32>, tensor<1000xi32>) -> (tensor<1000xf32>, tensor<1000xi32>)
  return %0#0, %0#1 : tensor<1000xf32>, tensor<1000xi32>
}"""),
    ("loop", """func.func @main(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>) -> (tensor<i32>, tensor<4x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4x64xf32>
  cond {
    %n = stablehlo.constant dense<7> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0] : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %q = stablehlo.tanh %p : tensor<4x64xf32>
    stablehlo.return %j, %q : tensor<i32>, tensor<4x64xf32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<4x64xf32>
}"""),
    ("branches", """func.func @main(%which: tensor<i32>, %x: tensor<2000xf32>) -> tensor<2000xf32> {
  %0 = "stablehlo.case"(%which) ({
    %a = stablehlo.sine %x : tensor<2000xf32>
    stablehlo.return %a : tensor<2000xf32>
  }, {
    %b = stablehlo.cosine %x : tensor<2000xf32>
    stablehlo.return %b : tensor<2000xf32>
  }, {
    stablehlo.return %x : tensor<2000xf32>
  }) : (tensor<i32>) -> tensor<2000xf32>
  return %0 : tensor<2000xf32>
}"""),
    ("scattered", """func.func @main(%x: tensor<50x3xf32>, %i: tensor<8x1xi32>, %u: tensor<8x3xf32>) -> (tensor<50x3xf32>, tensor<8x3xf32>) {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<50x3xf32>, tensor<8x1xi32>, tensor<8x3xf32>) -> tensor<50x3xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<50x3xf32>, tensor<8x1xi32>) -> tensor<8x3xf32>
  return %0, %1 : tensor<50x3xf32>, tensor<8x3xf32>
}"""),
    ("convolved", """func.func @main(%x: tensor<1x14x14x4xf32>, %k: tensor<3x3x4x8xf32>) -> tensor<1x12x12x8xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x14x14x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x12x12x8xf32>
  return %0 : tensor<1x12x12x8xf32>
}"""),
    ("factorized", """func.func @main(%x: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %p = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  %e = stablehlo.iota dim = 0 : tensor<6x6xf32>
  %f = stablehlo.iota dim = 1 : tensor<6x6xf32>
  %same = stablehlo.compare EQ, %e, %f : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xi1>
  %ten = stablehlo.constant dense<10.0> : tensor<6x6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<6x6xf32>
  %d = stablehlo.select %same, %ten, %zero : tensor<6x6xi1>, tensor<6x6xf32>
  %s = stablehlo.add %p, %d : tensor<6x6xf32>
  %c = stablehlo.cholesky %s, lower = true : tensor<6x6xf32>
  return %c : tensor<6x6xf32>
}"""),
    ("constants_alone", """func.func @main() -> (tensor<3xi64>, tensor<f32>) {
  %0 = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi64>
  %1 = stablehlo.constant dense<2.5> : tensor<f32>
  return %0, %1 : tensor<3xi64>, tensor<f32>
}"""),
    ("nothing_in_it", """func.func @main(%x: tensor<0x3xf32>, %n: tensor<ui8>) -> (tensor<0x3xf32>, tensor<ui8>) {
  %0 = stablehlo.add %x, %x : tensor<0x3xf32>
  return %0, %n : tensor<0x3xf32>, tensor<ui8>
}"""),
]

TWO_FUNCTIONS = """func.func @main(%x: tensor<8xf32> loc("features")) -> tensor<8xf32> {
  %0 = func.call @helper(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func public @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @helper(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
DONATED = """func.func @main(%x: tensor<100xf32> {tf.aliasing_output = 0 : i32}, %i: tensor<i32>, %u: tensor<1xf32>) -> tensor<100xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<100xf32>, tensor<1xf32>, tensor<i32>) -> tensor<100xf32>
  return %0 : tensor<100xf32>
}
"""
CUSTOM = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  %1:2 = stablehlo.custom_call @acme.halve(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  %2 = stablehlo.multiply %1#0, %1#0 : tensor<4xf32>
  return %2, %1#1 : tensor<4xf32>, tensor<2xf32>
}
"""
COLLECTIVE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
