// Elementwise ops, one program per op: in portable numerics every device gives the same bits.
// ----- EACH
// each: abs cbrt ceil cosine exponential exponential_minus_one floor logistic negate round_nearest_afz round_nearest_even sign sine tan tanh
// args: 0=random:1
func.func @main(%x: tensor<33xf32>) -> tensor<33xf32> {
  %0 = stablehlo.EACH %x : tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- EACH
// each: log log_plus_one rsqrt sqrt
// args: 0=random:1
func.func @main(%x: tensor<33xf32>) -> tensor<33xf32> {
  %a = stablehlo.abs %x : tensor<33xf32>
  %0 = stablehlo.EACH %a : tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- EACH
// each: add atan2 divide maximum minimum multiply power remainder subtract
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<33xf32>, %y: tensor<33xf32>) -> tensor<33xf32> {
  %0 = stablehlo.EACH %x, %y : tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- EACH of integers
// each: add and divide maximum minimum multiply or power remainder shift_left shift_right_arithmetic shift_right_logical subtract xor
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<33xi32>, %y: tensor<33xi32>) -> tensor<33xi32> {
  %0 = stablehlo.EACH %x, %y : tensor<33xi32>
  return %0 : tensor<33xi32>
}
// ----- EACH of integers
// each: abs count_leading_zeros negate not popcnt sign
// args: 0=random:1
func.func @main(%x: tensor<33xi32>) -> tensor<33xi32> {
  %0 = stablehlo.EACH %x : tensor<33xi32>
  return %0 : tensor<33xi32>
}
// ----- clamp
// args: 0=random:1
func.func @main(%x: tensor<33xf32>) -> tensor<33xf32> {
  %low = stablehlo.constant dense<-0.5> : tensor<f32>
  %high = stablehlo.constant dense<0.25> : tensor<f32>
  %0 = stablehlo.clamp %low, %x, %high : (tensor<f32>, tensor<33xf32>, tensor<f32>) -> tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- compare, select
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<33xf32>, %y: tensor<33xf32>) -> tensor<33xf32> {
  %p = stablehlo.compare LT, %x, %y : (tensor<33xf32>, tensor<33xf32>) -> tensor<33xi1>
  %0 = stablehlo.select %p, %x, %y : tensor<33xi1>, tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- is_finite
func.func @main() -> tensor<3xi1> {
  %x = stablehlo.constant dense<[0x7FC00000, 0x7F800000, 1.0]> : tensor<3xf32>
  %b = stablehlo.optimization_barrier %x : tensor<3xf32>
  %0 = stablehlo.is_finite %b : (tensor<3xf32>) -> tensor<3xi1>
  return %0 : tensor<3xi1>
}
// ----- bitcast_convert
// moves
// args: 0=random:1
func.func @main(%x: tensor<33xf32>) -> tensor<33xi32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<33xf32>) -> tensor<33xi32>
  return %0 : tensor<33xi32>
}
// ----- reduce_precision
// args: 0=random:1
func.func @main(%x: tensor<33xf32>) -> tensor<33xf32> {
  %0 = stablehlo.reduce_precision %x, format = e5m2 : tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- complex, real, imag
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<33xf32>, %y: tensor<33xf32>) -> (tensor<33xf32>, tensor<33xf32>) {
  %c = stablehlo.complex %x, %y : tensor<33xcomplex<f32>>
  %d = stablehlo.multiply %c, %c : tensor<33xcomplex<f32>>
  %0 = stablehlo.real %d : (tensor<33xcomplex<f32>>) -> tensor<33xf32>
  %1 = stablehlo.imag %d : (tensor<33xcomplex<f32>>) -> tensor<33xf32>
  return %0, %1 : tensor<33xf32>, tensor<33xf32>
}
// ----- map
// args: 0=random:1 1=random:2
func.func @main(%x: tensor<33xf32>, %y: tensor<33xf32>) -> tensor<33xf32> {
  %0 = "stablehlo.map"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %b : tensor<f32>
    %2 = stablehlo.add %1, %a : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<33xf32>, tensor<33xf32>) -> tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- chlo.EACH
// each: acos asin asinh atan atanh cosh erf erf_inv erfc sinh
// args: 0=random:1
func.func @main(%x: tensor<33xf32>) -> tensor<33xf32> {
  %0 = chlo.EACH %x : tensor<33xf32> -> tensor<33xf32>
  return %0 : tensor<33xf32>
}
// ----- chlo.EACH
// each: acosh digamma lgamma
// args: 0=random:1
func.func @main(%x: tensor<33xf32>) -> tensor<33xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<33xf32>
  %a = stablehlo.exponential %x : tensor<33xf32>
  %b = stablehlo.add %a, %one : tensor<33xf32>
  %0 = chlo.EACH %b : tensor<33xf32> -> tensor<33xf32>
  return %0 : tensor<33xf32>
}
