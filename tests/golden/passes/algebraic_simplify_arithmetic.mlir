// The rules of arithmetic, logic, comparisons and conversions, one function each; a rewrite that would change a
// bit is not a rule (no_rule_…).
// RUN: tenon opt %s --passes=algebraic-simplify,dce | FileCheck %s

// CHECK-LABEL: func.func @add_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @add_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %z = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.add %z, %x : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @add_minus_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @add_minus_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %r = stablehlo.add %x, %z : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @no_rule_add_plus_zero(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.add(%arg0, %[[C]])
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @no_rule_add_plus_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %r = stablehlo.add %x, %z : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @subtract_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @subtract_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %r = stablehlo.subtract %x, %z : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @no_rule_subtract_minus_zero(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.subtract(%arg0, %[[C]])
func.func @no_rule_subtract_minus_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %r = stablehlo.subtract %x, %z : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @subtract_itself(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<0> : s32[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @subtract_itself(%x: tensor<4xi32>) -> tensor<4xi32> {
  %r = stablehlo.subtract %x, %x : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @no_rule_subtract_itself(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.subtract(%arg0, %arg0)
func.func @no_rule_subtract_itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.subtract %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @multiply_one(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @multiply_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = stablehlo.constant dense<1.0> : tensor<4xf32>
  %r = stablehlo.multiply %k, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @multiply_zero(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<0> : s32[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @multiply_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.multiply %x, %k : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @no_rule_multiply_zero(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.multiply(%arg0, %[[C]])
func.func @no_rule_multiply_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = stablehlo.constant dense<0.0> : tensor<4xf32>
  %r = stablehlo.multiply %x, %k : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @no_rule_multiply_one_complex(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.multiply(%arg0, %[[C]])
func.func @no_rule_multiply_one_complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %k = stablehlo.constant dense<(1.0, 0.0)> : tensor<4xcomplex<f32>>
  %r = stablehlo.multiply %x, %k : tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @divide_one(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @divide_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = stablehlo.constant dense<1.0> : tensor<4xf32>
  %r = stablehlo.divide %x, %k : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @power_one(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @power_one(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<1> : tensor<4xi32>
  %r = stablehlo.power %x, %k : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @maximum_itself(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @maximum_itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.maximum %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @minimum_itself(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @minimum_itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.minimum %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @and_itself(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @and_itself(%x: tensor<4xi32>) -> tensor<4xi32> {
  %r = stablehlo.and %x, %x : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @and_zero(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<0> : s32[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @and_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.and %x, %k : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @and_ones(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @and_ones(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<-1> : tensor<4xi32>
  %r = stablehlo.and %x, %k : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @or_itself(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @or_itself(%x: tensor<4xi1>) -> tensor<4xi1> {
  %r = stablehlo.or %x, %x : tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @or_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @or_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.or %k, %x : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @or_ones(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<true> : pred[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @or_ones(%x: tensor<4xi1>) -> tensor<4xi1> {
  %k = stablehlo.constant dense<true> : tensor<4xi1>
  %r = stablehlo.or %k, %x : tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @xor_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @xor_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.xor %k, %x : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @xor_itself(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<0> : s32[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @xor_itself(%x: tensor<4xi32>) -> tensor<4xi32> {
  %r = stablehlo.xor %x, %x : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @shift_left_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @shift_left_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.shift_left %x, %k : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @shift_right_logical_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @shift_right_logical_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.shift_right_logical %x, %k : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @shift_right_arithmetic_zero(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @shift_right_arithmetic_zero(%x: tensor<4xi32>) -> tensor<4xi32> {
  %k = stablehlo.constant dense<0> : tensor<4xi32>
  %r = stablehlo.shift_right_arithmetic %x, %k : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @negate_twice(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @negate_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.negate %x : tensor<4xf32>
  %r = stablehlo.negate %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @not_twice(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @not_twice(%x: tensor<4xi32>) -> tensor<4xi32> {
  %a = stablehlo.not %x : tensor<4xi32>
  %r = stablehlo.not %a : tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @abs_twice(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.abs(%arg0)
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @abs_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.abs %x : tensor<4xf32>
  %r = stablehlo.abs %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @floor_twice(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.floor(%arg0)
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @floor_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.floor %x : tensor<4xf32>
  %r = stablehlo.floor %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @ceil_twice(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.ceil(%arg0)
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @ceil_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.ceil %x : tensor<4xf32>
  %r = stablehlo.ceil %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @abs_of_negate(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.abs(%arg0)
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @abs_of_negate(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.negate %x : tensor<4xf32>
  %r = stablehlo.abs %a : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @select_one(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @select_one(%x: tensor<4xf32>, %p: tensor<4xi1>) -> tensor<4xf32> {
  %r = stablehlo.select %p, %x, %x : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @select_constant(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @select_constant(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %p = stablehlo.constant dense<false> : tensor<4xi1>
  %r = stablehlo.select %p, %y, %x : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @select_not(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.select(%arg2, %arg1, %arg0)
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @select_not(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<4xi1>) -> tensor<4xf32> {
  %n = stablehlo.not %p : tensor<4xi1>
  %r = stablehlo.select %n, %x, %y : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @compare_itself(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<true> : pred[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @compare_itself(%x: tensor<4xi32>) -> tensor<4xi1> {
  %r = stablehlo.compare LE, %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @no_rule_compare_itself(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.compare(%arg0, %arg0)
func.func @no_rule_compare_itself(%x: tensor<4xf32>) -> tensor<4xi1> {
  %r = stablehlo.compare EQ, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @compare_unsigned(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<false> : pred[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @compare_unsigned(%x: tensor<4xui32>) -> tensor<4xi1> {
  %z = stablehlo.constant dense<0> : tensor<4xui32>
  %r = stablehlo.compare LT, %x, %z : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @compare_unsigned_left(
// CHECK-NEXT: %[[C:[0-9]+]] = stablehlo.constant() {value = dense<true> : pred[4]}
// CHECK-NEXT: stablehlo.return(%[[C]])
func.func @compare_unsigned_left(%x: tensor<4xui32>) -> tensor<4xi1> {
  %z = stablehlo.constant dense<0> : tensor<4xui32>
  %r = stablehlo.compare LE, %z, %x : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @compare_truth(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @compare_truth(%x: tensor<4xi1>) -> tensor<4xi1> {
  %t = stablehlo.constant dense<false> : tensor<4xi1>
  %r = stablehlo.compare NE, %x, %t : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// CHECK-LABEL: func.func @convert_same(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @convert_same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.convert %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @convert_back(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @convert_back(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %a = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
  %r = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}

// CHECK-LABEL: func.func @convert_through(
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.convert(%arg0) : f32[4]
// CHECK-NEXT: stablehlo.return(%[[R]])
func.func @convert_through(%x: tensor<4xi8>) -> tensor<4xf32> {
  %a = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi32>
  %r = stablehlo.convert %a : (tensor<4xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// From a float it saturates at the ends of its range; from an integer it would wrap.
// CHECK-LABEL: func.func @no_rule_convert_saturates(
// CHECK-NEXT: %[[A:[0-9]+]] = stablehlo.convert(%arg0) : f32[4]
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.convert(%[[A]]) : u8[4]
// CHECK-NEXT: return(%[[R]])
func.func @no_rule_convert_saturates(%x: tensor<4xi8>) -> tensor<4xui8> {
  %a = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xf32>
  %r = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xui8>
  return %r : tensor<4xui8>
}

// CHECK-LABEL: func.func @no_rule_convert_narrower(
// CHECK-NEXT: %[[A:[0-9]+]] = stablehlo.convert(%arg0) : bf16[4]
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.convert(%[[A]]) : f32[4]
func.func @no_rule_convert_narrower(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  %r = stablehlo.convert %a : (tensor<4xbf16>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @no_rule_convert_to_float(
// CHECK-NEXT: %[[A:[0-9]+]] = stablehlo.convert(%arg0) : f32[4]
// CHECK-NEXT: %[[R:[0-9]+]] = stablehlo.convert(%[[A]]) : s32[4]
func.func @no_rule_convert_to_float(%x: tensor<4xi32>) -> tensor<4xi32> {
  %a = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xf32>
  %r = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// CHECK-LABEL: func.func @bitcast_same(
// CHECK-NEXT: stablehlo.return(%arg0)
func.func @bitcast_same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
