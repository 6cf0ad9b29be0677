// Pretty and generic forms of ops without regions, including old spellings.
#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::Form;

// --- Forms that many ops share

struct Group {
  const char* format;  // of the op's name
  std::vector<const char*> names;
  const char* hlo;
};

TEST(ParseOp, GroupsOfOneForm) {
  const Group groups[] = {
      {"%0 = stablehlo.{} %a : tensor<2x3xf32>",
       {"abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log",
        "log_plus_one", "logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt",
        "sign", "sine", "sqrt", "tan", "tanh"},
       "%0 = stablehlo.{}(%arg0) : f32[2,3]\n"},
      {"%0 = stablehlo.{} %n : tensor<2x3xi32>",
       {"count_leading_zeros", "not", "popcnt"},
       "%0 = stablehlo.{}(%arg3) : s32[2,3]\n"},
      {"%0 = stablehlo.{} %a, %b : tensor<2x3xf32>",
       {"add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder",
        "subtract"},
       "%0 = stablehlo.{}(%arg0, %arg1) : f32[2,3]\n"},
      {"%0 = stablehlo.{} %n, %n : tensor<2x3xi32>",
       {"and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"},
       "%0 = stablehlo.{}(%arg3, %arg3) : s32[2,3]\n"},
      {"%0 = chlo.{} %a : tensor<2x3xf32> -> tensor<2x3xf32>",
       {"acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf",
        "erf_inv", "erfc", "lgamma", "sinh", "square", "tan"},
       "%0 = chlo.{}(%arg0) : f32[2,3]\n"},
      {"%0 = chlo.{} %a, %b : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>",
       {"next_after", "polygamma", "zeta"},
       "%0 = chlo.{}(%arg0, %arg1) : f32[2,3]\n"},
      {"%0 = chlo.{} %a, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
       {"broadcast_add", "broadcast_subtract", "broadcast_multiply", "broadcast_divide",
        "broadcast_maximum", "broadcast_minimum", "broadcast_power", "broadcast_remainder",
        "broadcast_atan2", "broadcast_next_after"},
       "%0 = chlo.{}(%arg0, %arg4) : f32[2,3]\n"},
  };
  for (const Group& group : groups) {
    for (const char* name : group.names) {
      const auto module =
          testing::read(testing::program(fmt::format(fmt::runtime(group.format), name)));
      ASSERT_TRUE(module);
      EXPECT_EQ(testing::body_of(*module), fmt::format(fmt::runtime(group.hlo), name));
      testing::expect_round_trip(*module);
    }
  }
}

// --- The others

class OpForm : public ::testing::TestWithParam<Form> {};
TEST_P(OpForm, IsReadAndRoundTrips) {
  const auto module = testing::read(testing::program(GetParam().text));
  ASSERT_TRUE(module);
  EXPECT_EQ(testing::body_of(*module), GetParam().hlo);
  testing::expect_round_trip(*module);
}

const Form
    kForms
        [] =
            {Form{
                 "AddGeneric",
                 R"(%0 = "stablehlo.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.add(%arg0, %arg1) : f32[2,3]
)"},
             Form{
                 "AddFunctionType",
                 R"(%0 = stablehlo.add %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.add(%arg0, %arg1) : f32[2,3]
)"},
             Form{
                 "AddAttributes",
                 R"(%0 = stablehlo.add %a, %b {mhlo.frontend_attributes = {k = "v"}} : tensor<2x3xf32>)",
                 R"(%0 = stablehlo.add(%arg0, %arg1) {mhlo.frontend_attributes = {k = "v"}} : f32[2,3]
)"},
             Form{
                 "ExponentialAccuracy",
                 R"(%0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>)",
                 R"(%0 = stablehlo.exponential(%arg0) {result_accuracy = #stablehlo.result_accuracy<ulps = 3, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : f32[2,3]
)"},
             Form{"Convert", R"(%0 = stablehlo.convert %a : (tensor<2x3xf32>) -> tensor<2x3xbf16>)",
                  R"(%0 = stablehlo.convert(%arg0) : bf16[2,3]
)"},
             Form{"ConvertSame", R"(%0 = stablehlo.convert %a : tensor<2x3xf32>)",
                  R"(%0 = stablehlo.convert(%arg0) : f32[2,3]
)"},
             Form{"Real",
                  R"(%0 = stablehlo.real %c : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>)",
                  R"(%0 = stablehlo.real(%arg6) : f32[2,3]
)"},
             Form{"Imag",
                  R"(%0 = stablehlo.imag %c : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>)",
                  R"(%0 = stablehlo.imag(%arg6) : f32[2,3]
)"},
             Form{"Complex", R"(%0 = stablehlo.complex %a, %b : tensor<2x3xcomplex<f32>>)",
                  R"(%0 = stablehlo.complex(%arg0, %arg1) : c64[2,3]
)"},
             Form{
                 "ComplexFunctionType",
                 R"(%0 = stablehlo.complex %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xcomplex<f32>>)",
                 R"(%0 = stablehlo.complex(%arg0, %arg1) : c64[2,3]
)"},
             Form{"IsFinite",
                  R"(%0 = stablehlo.is_finite %a : (tensor<2x3xf32>) -> tensor<2x3xi1>)",
                  R"(%0 = stablehlo.is_finite(%arg0) : pred[2,3]
)"},
             Form{"Clamp", R"(%0 = stablehlo.clamp %a, %b, %a : tensor<2x3xf32>)",
                  R"(%0 = stablehlo.clamp(%arg0, %arg1, %arg0) : f32[2,3]
)"},
             Form{
                 "ClampScalar",
                 R"(%0 = stablehlo.clamp %s, %b, %s : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.clamp(%arg4, %arg1, %arg4) : f32[2,3]
)"},
             Form{"Select", R"(%0 = stablehlo.select %p, %a, %b : tensor<2x3xi1>, tensor<2x3xf32>)",
                  R"(%0 = stablehlo.select(%arg2, %arg0, %arg1) : f32[2,3]
)"},
             Form{
                 "SelectFunctionType",
                 R"(%0 = stablehlo.select %p, %a, %b : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.select(%arg2, %arg0, %arg1) : f32[2,3]
)"},
             Form{
                 "Compare",
                 R"(%0 = stablehlo.compare LT, %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>)",
                 R"(%0 = stablehlo.compare(%arg0, %arg1) {comparison_direction = LT} : pred[2,3]
)"},
             Form{
                 "CompareTotalOrder",
                 R"(%0 = stablehlo.compare  GE, %a, %b,  TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>)",
                 R"(%0 = stablehlo.compare(%arg0, %arg1) {compare_type = TOTALORDER, comparison_direction = GE} : pred[2,3]
)"},
             Form{
                 "CompareSigned",
                 R"(%0 = stablehlo.compare EQ, %n, %n, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>)",
                 R"(%0 = stablehlo.compare(%arg3, %arg3) {compare_type = SIGNED, comparison_direction = EQ} : pred[2,3]
)"},
             Form{
                 "CompareGeneric",
                 R"(%0 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>)",
                 R"(%0 = stablehlo.compare(%arg0, %arg1) {compare_type = FLOAT, comparison_direction = NE} : pred[2,3]
)"},
             Form{"Reshape", R"(%0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<6xf32>)",
                  R"(%0 = stablehlo.reshape(%arg0) : f32[6]
)"},
             Form{"BitcastConvert",
                  R"(%0 = stablehlo.bitcast_convert %a : (tensor<2x3xf32>) -> tensor<2x3xi32>)",
                  R"(%0 = stablehlo.bitcast_convert(%arg0) : s32[2,3]
)"},
             Form{"Constant", R"(%0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>)",
                  R"(%0 = stablehlo.constant() {value = dense<[1, 2]> : s32[2]} : s32[2]
)"},
             Form{"ConstantAttributes",
                  R"(%0 = stablehlo.constant {k = 1 : i32} dense<1.0> : tensor<4xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<1.0> : f32[4], k = 1 : i32} : f32[4]
)"},
             Form{
                 "ConstantGeneric",
                 R"(%0 = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>)",
                 R"(%0 = stablehlo.constant() {value = dense<1.0> : f32[4]} : f32[4]
)"},
             Form{
                 "ConstantQuantized",
                 R"(%0 = stablehlo.constant() <{value = dense<1> : tensor<4xi8>}> : () -> tensor<4x!quant.uniform<i8:f32, 0.5>>)",
                 R"(%0 = stablehlo.constant() {value = dense<1> : s8[4]} : q<s8:f32, 0.5>[4]
)"},
             Form{
                 "ConstantOldQuantized",
                 R"(%0 = stablehlo.constant() {value = dense<1> : tensor<4xi8>} : () -> tensor<4x!quant.uniform<i8:f32, 0.5>>)",
                 R"(%0 = stablehlo.constant() {value = dense<1> : s8[4]} : q<s8:f32, 0.5>[4]
)"},
             Form{"Iota", R"(%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>)",
                  R"(%0 = stablehlo.iota() {iota_dimension = 1} : s32[2,3]
)"},
             Form{"IotaGeneric",
                  R"(%0 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xi32>)",
                  R"(%0 = stablehlo.iota() {iota_dimension = 1} : s32[2,3]
)"},
             Form{"DynamicIota", R"(%0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
%1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<2xi64>) -> tensor<?x?xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<[2, 3]> : s64[2]} : s64[2]
%1 = stablehlo.dynamic_iota(%0) {iota_dimension = 0} : f32[?,?]
)"},
             Form{
                 "BroadcastInDim",
                 R"(%0 = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>)",
                 R"(%0 = stablehlo.broadcast_in_dim(%arg0) {broadcast_dimensions = [1, 2]} : f32[4,2,3]
)"},
             Form{
                 "BroadcastInDimEmpty",
                 R"(%0 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.broadcast_in_dim(%arg4) {broadcast_dimensions = []} : f32[2,3]
)"},
             Form{
                 "BroadcastInDimOld",
                 R"(%0 = "stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<[1, 2]> : tensor<2xi64>} : (tensor<2x3xf32>) -> tensor<4x2x3xf32>)",
                 R"(%0 = stablehlo.broadcast_in_dim(%arg0) {broadcast_dimensions = [1, 2]} : f32[4,2,3]
)"},
             Form{
                 "Broadcast",
                 R"(%0 = stablehlo.broadcast %a, sizes = [4] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>)",
                 R"(%0 = stablehlo.broadcast(%arg0) {broadcast_sizes = [4]} : f32[4,2,3]
)"},
             Form{
                 "Transpose",
                 R"(%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>)",
                 R"(%0 = stablehlo.transpose(%arg0) {permutation = [1, 0]} : f32[3,2]
)"},
             Form{"Reverse", R"(%0 = stablehlo.reverse %a, dims = [0] : tensor<2x3xf32>)",
                  R"(%0 = stablehlo.reverse(%arg0) {dimensions = [0]} : f32[2,3]
)"},
             Form{"DynamicBroadcastInDim", R"(%0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
%1 = stablehlo.dynamic_broadcast_in_dim %a, %0, dims = [0, 1] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<[2, 3]> : s64[2]} : s64[2]
%1 = stablehlo.dynamic_broadcast_in_dim(%arg0, %0) {broadcast_dimensions = [0, 1], known_nonexpanding_dimensions = [0, 1]} : f32[?,?]
)"},
             Form{"DynamicReshape", R"(%0 = stablehlo.constant dense<6> : tensor<1xi64>
%1 = stablehlo.dynamic_reshape %a, %0 : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<?xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<6> : s64[1]} : s64[1]
%1 = stablehlo.dynamic_reshape(%arg0, %0) : f32[?]
)"},
             Form{
                 "Slice",
                 R"(%0 = stablehlo.slice %a [0:2:2, 1:3] : (tensor<2x3xf32>) -> tensor<1x2xf32>)",
                 R"(%0 = stablehlo.slice(%arg0) {limit_indices = [2, 3], start_indices = [0, 1], strides = [2, 1]} : f32[1,2]
)"},
             Form{
                 "SliceScalar", R"(%0 = stablehlo.slice %s [] : (tensor<f32>) -> tensor<f32>)",
                 R"(%0 = stablehlo.slice(%arg4) {limit_indices = [], start_indices = [], strides = []} : f32[]
)"},
             Form{
                 "SliceOld",
                 R"(%0 = "stablehlo.slice"(%a) {start_indices = dense<[0, 1]> : tensor<2xi64>, limit_indices = dense<[2, 3]> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} : (tensor<2x3xf32>) -> tensor<2x2xf32>)",
                 R"(%0 = stablehlo.slice(%arg0) {limit_indices = [2, 3], start_indices = [0, 1], strides = [1, 1]} : f32[2,2]
)"},
             Form{
                 "DynamicSlice",
                 R"(%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 3] : (tensor<2x3xf32>, tensor<i64>, tensor<i64>) -> tensor<1x3xf32>)",
                 R"(%0 = stablehlo.dynamic_slice(%arg0, %arg5, %arg5) {slice_sizes = [1, 3]} : f32[1,3]
)"},
             Form{
                 "DynamicUpdateSlice",
                 R"(%0 = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.dynamic_update_slice(%arg0, %arg1, %arg5, %arg5) : f32[2,3]
)"},
             Form{
                 "Pad",
                 R"(%0 = stablehlo.pad %a, %s, low = [0, -1], high = [1, 0], interior = [0, 2] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x6xf32>)",
                 R"(%0 = stablehlo.pad(%arg0, %arg4) {edge_padding_high = [1, 0], edge_padding_low = [0, -1], interior_padding = [0, 2]} : f32[3,6]
)"},
             Form{
                 "Concatenate",
                 R"(%0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>)",
                 R"(%0 = stablehlo.concatenate(%arg0, %arg1) {dimension = 1} : f32[2,6]
)"},
             Form{
                 "ConcatenateOne",
                 R"(%0 = stablehlo.concatenate %a, dim = 0 : (tensor<2x3xf32>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.concatenate(%arg0) {dimension = 0} : f32[2,3]
)"},
             Form{
                 "DotGeneral",
                 R"(%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>)",
                 R"(%0 = stablehlo.dot_general(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : f32[2,2]
)"},
             Form{
                 "DotGeneralAll",
                 R"(%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>)",
                 R"(%0 = stablehlo.dot_general(%arg0, %arg1) {algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false>, dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : f32[2]
)"},
             Form{
                 "DotGeneralGeneric",
                 R"(%0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>]}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>)",
                 R"(%0 = stablehlo.dot_general(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [HIGH, HIGH]} : f32[2,2]
)"},
             Form{
                 "DotGeneralOuter",
                 R"(%0 = stablehlo.dot_general %s, %a, contracting_dims = [] x [] : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.dot_general(%arg4, %arg0) {dot_dimension_numbers = #stablehlo.dot<>} : f32[2,3]
)"},
             Form{
                 "Dot",
                 R"(%0 = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
%1 = stablehlo.dot %a, %0, precision = [HIGH, HIGH] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>)",
                 R"(%0 = stablehlo.transpose(%arg1) {permutation = [1, 0]} : f32[3,2]
%1 = stablehlo.dot(%arg0, %0) {precision_config = [HIGH, HIGH]} : f32[2,2]
)"},
             Form{
                 "DotPlain",
                 R"(%0 = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
%1 = stablehlo.dot %a, %0 : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>)",
                 R"(%0 = stablehlo.transpose(%arg1) {permutation = [1, 0]} : f32[3,2]
%1 = stablehlo.dot(%arg0, %0) : f32[2,2]
)"},
             Form{"Convolution", R"(%0 = stablehlo.constant dense<1.0> : tensor<1x8x4xf32>
%1 = stablehlo.constant dense<1.0> : tensor<2x2x6xf32>
%2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 0]], lhs_dilate = [1], rhs_dilate = [2], reverse = [1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x4xf32>, tensor<2x2x6xf32>) -> tensor<1x4x6xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<1.0> : f32[1,8,4]} : f32[1,8,4]
%1 = stablehlo.constant() {value = dense<1.0> : f32[2,2,6]} : f32[2,2,6]
%2 = stablehlo.convolution(%0, %1) {batch_group_count = 1, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 2, padding = [[1, 0]], rhs_dilation = [2], window_reversal = array<i1: true>, window_strides = [2]} : f32[1,4,6]
)"},
             Form{"ConvolutionBare", R"(%0 = stablehlo.constant dense<1.0> : tensor<1x8x4xf32>
%1 = stablehlo.constant dense<1.0> : tensor<2x4x6xf32>
%2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x4xf32>, tensor<2x4x6xf32>) -> tensor<1x7x6xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<1.0> : f32[1,8,4]} : f32[1,8,4]
%1 = stablehlo.constant() {value = dense<1.0> : f32[2,4,6]} : f32[2,4,6]
%2 = stablehlo.convolution(%0, %1) {batch_group_count = 1, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1} : f32[1,7,6]
)"},
             Form{
                 "ReducePrecision",
                 R"(%0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<2x3xf32>)",
                 R"(%0 = stablehlo.reduce_precision(%arg0) {exponent_bits = 5, mantissa_bits = 10} : f32[2,3]
)"},
             Form{"Rng", R"(%0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
%1 = stablehlo.rng %s, %s, %0, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<[2, 3]> : s64[2]} : s64[2]
%1 = stablehlo.rng(%arg4, %arg4, %0) {rng_distribution = UNIFORM} : f32[2,3]
)"},
             Form{"RngOld", R"(%0 = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
%1 = stablehlo.rng %s, %s, %0, distribution =  NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<[2, 3]> : s64[2]} : s64[2]
%1 = stablehlo.rng(%arg4, %arg4, %0) {rng_distribution = NORMAL} : f32[2,3]
)"},
             Form{"RngBitGenerator", R"(%0 = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
%1, %2 = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>))",
                  R"(%0 = stablehlo.constant() {value = dense<[1, 2]> : u64[2]} : u64[2]
%1:2 = stablehlo.rng_bit_generator(%0) {rng_algorithm = THREE_FRY} : u64[2], u32[4]
)"},
             Form{"RngBitGeneratorOld", R"(%0 = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
%1, %2 = stablehlo.rng_bit_generator %0, algorithm =  DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>))",
                  R"(%0 = stablehlo.constant() {value = dense<[1, 2]> : u64[2]} : u64[2]
%1:2 = stablehlo.rng_bit_generator(%0) {rng_algorithm = DEFAULT} : u64[2], u32[4]
)"},
             Form{
                 "Fft",
                 R"(%0 = stablehlo.fft %c, type = FFT, length = [3] : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>)",
                 R"(%0 = stablehlo.fft(%arg6) {fft_length = [3], fft_type = FFT} : c64[2,3]
)"},
             Form{
                 "RfftOld",
                 R"(%0 = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type RFFT>, fft_length = dense<3> : tensor<1xi64>} : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>)",
                 R"(%0 = stablehlo.fft(%arg0) {fft_length = [3], fft_type = RFFT} : c64[2,2]
)"},
             Form{"Cholesky", R"(%0 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
%1 = stablehlo.cholesky %0, lower = true : tensor<2x2xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<1.0> : f32[2,2]} : f32[2,2]
%1 = stablehlo.cholesky(%0) {lower = true} : f32[2,2]
)"},
             Form{"CholeskyUpper", R"(%0 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
%1 = stablehlo.cholesky %0 : tensor<2x2xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<1.0> : f32[2,2]} : f32[2,2]
%1 = stablehlo.cholesky(%0) : f32[2,2]
)"},
             Form{
                 "GetDimensionSize",
                 R"(%0 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>)",
                 R"(%0 = stablehlo.get_dimension_size(%arg0) {dimension = 1} : s32[]
)"},
             Form{"SetDimensionSize", R"(%0 = stablehlo.constant dense<2> : tensor<i32>
%1 = stablehlo.set_dimension_size %a, %0, dim = 1 : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 3>>)",
                  R"(%0 = stablehlo.constant() {value = dense<2> : s32[]} : s32[]
%1 = stablehlo.set_dimension_size(%arg0, %0) {dimension = 1} : f32[2,?<=3]
)"},
             Form{
                 "Einsum",
                 R"(%0 = stablehlo.einsum %a, %b, config = "ab,cb->ac" : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>)",
                 R"(%0 = stablehlo.einsum(%arg0, %arg1) {einsum_config = "ab,cb->ac"} : f32[2,2]
)"},
             Form{
                 "UnaryEinsum",
                 R"(%0 = stablehlo.unary_einsum %a, config = "ab->a" : (tensor<2x3xf32>) -> tensor<2xf32>)",
                 R"(%0 = stablehlo.unary_einsum(%arg0) {einsum_config = "ab->a"} : f32[2]
)"},
             Form{
                 "UniformQuantize",
                 R"(%0 = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.5>>
%1 = stablehlo.uniform_dequantize %0 : (tensor<2x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x3xf32>)",
                 R"(%0 = stablehlo.uniform_quantize(%arg0) : q<s8:f32, 0.5>[2,3]
%1 = stablehlo.uniform_dequantize(%0) : f32[2,3]
)"},
             Form{"RealDynamicSlice", R"(%0 = stablehlo.constant dense<1> : tensor<2xi64>
%1 = stablehlo.real_dynamic_slice %a, %0, %0, %0 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<1> : s64[2]} : s64[2]
%1 = stablehlo.real_dynamic_slice(%arg0, %0, %0, %0) : f32[?,?]
)"},
             Form{"DynamicPad", R"(%0 = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
%1 = stablehlo.dynamic_pad %a, %s, %0, %0, %0 : (tensor<2x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>)",
                  R"(%0 = stablehlo.constant() {value = dense<[0, 1]> : s64[2]} : s64[2]
%1 = stablehlo.dynamic_pad(%arg0, %arg4, %0, %0, %0) : f32[?,?]
)"},
             Form{"ChloConj",
                  R"(%0 = chlo.conj %c : tensor<2x3xcomplex<f32>> -> tensor<2x3xcomplex<f32>>)",
                  R"(%0 = chlo.conj(%arg6) : c64[2,3]
)"},
             Form{"ChloIsInf", R"(%0 = chlo.is_inf %a : tensor<2x3xf32> -> tensor<2x3xi1>)",
                  R"(%0 = chlo.is_inf(%arg0) : pred[2,3]
)"},
             Form{"ChloIsNegInf", R"(%0 = chlo.is_neg_inf %a : tensor<2x3xf32> -> tensor<2x3xi1>)",
                  R"(%0 = chlo.is_neg_inf(%arg0) : pred[2,3]
)"},
             Form{"ChloIsPosInf", R"(%0 = chlo.is_pos_inf %a : tensor<2x3xf32> -> tensor<2x3xi1>)",
                  R"(%0 = chlo.is_pos_inf(%arg0) : pred[2,3]
)"},
             Form{"ChloMulhi",
                  R"(%0 = chlo.mulhi %n, %n : tensor<2x3xi32>, tensor<2x3xi32> -> tensor<2x3xi32>)",
                  R"(%0 = chlo.mulhi(%arg3, %arg3) : s32[2,3]
)"},
             Form{
                 "ChloTopK",
                 R"(%0:2 = chlo.top_k(%a, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>))",
                 R"(%0:2 = chlo.top_k(%arg0) {k = 2} : f32[2,2], s32[2,2]
)"},
             Form{
                 "ChloTopKUnstable",
                 R"(%0:2 = chlo.top_k(%a, k = 2, is_stable = false) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>))",
                 R"(%0:2 = chlo.top_k(%arg0) {is_stable = false, k = 2} : f32[2,2], s32[2,2]
)"},
             Form{
                 "ChloBroadcastAdd",
                 R"(%0 = chlo.broadcast_add %a, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>)",
                 R"(%0 = chlo.broadcast_add(%arg0, %arg4) : f32[2,3]
)"},
             Form{
                 "ChloBroadcastCompare",
                 R"(%0 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>)",
                 R"(%0 = chlo.broadcast_compare(%arg0, %arg1) {comparison_direction = LT} : pred[2,3]
)"},
             Form{
                 "ChloConstantLike",
                 R"(%0 = "chlo.constant_like"(%a) <{value = 3.2 : f32}> : (tensor<2x3xf32>) -> tensor<2x3xf32>)",
                 R"(%0 = chlo.constant_like(%arg0) {value = 3.2 : f32} : f32[2,3]
)"}};
INSTANTIATE_TEST_SUITE_P(Table, OpForm, ::testing::ValuesIn(kForms),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace tenon::hlo
