// Contractions: products of matrices in each arrangement of dimensions, convolutions.
#include "conformance/cases/text_program.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;
using enum ElementType;

constexpr TextTemplate kDotGeneral[] = {
    {"matrix", "7x13x$T, 13x9x$T", "7x9x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"lhs_transposed", "13x7x$T, 13x9x$T", "7x9x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : ($A, $B) -> $R"},
    {"rhs_transposed", "7x13x$T, 9x13x$T", "7x9x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : ($A, $B) -> $R"},
    {"batch", "3x4x5x$T, 3x5x6x$T", "3x4x6x$T", "data",
     "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
     ": ($A, $B) -> $R"},
    {"batch2_contract1", "2x3x4x5x$T, 2x3x5x4x$T", "2x3x4x4x$T", "data",
     "%r = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], "
     "contracting_dims = [3] x [2] : ($A, $B) -> $R"},
    {"batch_minor", "4x5x3x$T, 5x6x3x$T", "3x4x6x$T", "data",
     "%r = stablehlo.dot_general %a, %b, batching_dims = [2] x [2], contracting_dims = [1] x [0] "
     ": ($A, $B) -> $R"},
    {"contract2", "4x5x3x$T, 5x3x7x$T", "4x7x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1, 2] x [0, 1] : ($A, $B) -> $R"},
    {"contract2_crossed", "4x5x3x$T, 3x5x7x$T", "4x7x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1, 2] x [1, 0] : ($A, $B) -> $R"},
    {"vector_vector", "37x$T, 37x$T", "$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : ($A, $B) -> $R"},
    {"matrix_vector", "11x37x$T, 37x$T", "11x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"vector_matrix", "37x$T, 37x11x$T", "11x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : ($A, $B) -> $R"},
    {"outer_product", "7x$T, 9x$T", "7x9x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [] x [] : ($A, $B) -> $R"},
    {"one_term", "5x1x$T, 1x6x$T", "5x6x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"no_terms", "3x0x$T, 0x4x$T", "3x4x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"batch_only", "3x4x$T, 3x4x$T", "3x4x$T", "data",
     "%r = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], "
     "contracting_dims = [] x [] : ($A, $B) -> $R"},
    {"one_row", "1x65x$T, 65x33x$T", "1x33x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"aligned", "64x64x$T, 64x64x$T", "64x64x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"unaligned", "67x129x$T, 129x35x$T", "67x35x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"long", "3x2051x$T, 2051x2x$T", "3x2x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"highest_precision", "7x13x$T, 13x9x$T", "7x9x$T", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], "
     "precision = [HIGHEST, HIGHEST] : ($A, $B) -> $R"},
};

// Products whose results have a wider type than the operands.
constexpr TextTemplate kDotWidened[] = {
    {"to_f32", "7x33x$T, 33x9x$T", "7x9xf32", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"to_i32", "7x33x$T, 33x9x$T", "7x9xi32", "data",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ($A, $B) -> $R"},
    {"batch_to_f32", "2x5x33x$T, 2x9x33x$T", "2x5x9xf32", "data",
     "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
     ": ($A, $B) -> $R"},
};

constexpr TextTemplate kDot[] = {
    {"matrix", "7x13x$T, 13x9x$T", "7x9x$T", "data", "%r = stablehlo.dot %a, %b : ($A, $B) -> $R"},
    {"vector_vector", "37x$T, 37x$T", "$T", "data", "%r = stablehlo.dot %a, %b : ($A, $B) -> $R"},
    {"matrix_vector", "11x37x$T, 37x$T", "11x$T", "data",
     "%r = stablehlo.dot %a, %b : ($A, $B) -> $R"},
};

constexpr TextTemplate kEinsum[] = {
    {"matrix", "7x13x$T, 13x9x$T", "7x9x$T", "data",
     "%r = stablehlo.einsum %a, %b, config = \"ij,jk->ik\" : ($A, $B) -> $R"},
    {"batch", "3x4x5x$T, 3x5x6x$T", "3x4x6x$T", "data",
     "%r = stablehlo.einsum %a, %b, config = \"bij,bjk->bik\" : ($A, $B) -> $R"},
    {"transposed_result", "7x13x$T, 13x9x$T", "9x7x$T", "data",
     "%r = stablehlo.einsum %a, %b, config = \"ij,jk->ki\" : ($A, $B) -> $R"},
};
constexpr TextTemplate kUnaryEinsum[] = {
    {"sum", "7x13x$T", "7x$T", "data",
     "%r = stablehlo.unary_einsum %a, config = \"ij->i\" : ($A) -> $R"},
    {"transpose", "4x5x$T", "5x4x$T", "data",
     "%r = stablehlo.unary_einsum %a, config = \"ij->ji\" : ($A) -> $R\n"
     "%n = stablehlo.negate %r : $R"},
};

constexpr TextTemplate kConvolution[] = {
    {"valid", "2x8x9x3x$T, 3x3x3x4x$T", "2x6x7x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"same_padding", "2x8x9x3x$T, 3x3x3x4x$T", "2x8x9x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {pad = [[1, 1], [1, 1]]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"stride2", "2x8x9x3x$T, 3x3x3x4x$T", "2x4x4x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {stride = [2, 2], pad = [[1, 1], [0, 0]]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"rhs_dilated", "2x8x9x3x$T, 3x2x3x4x$T", "2x4x7x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {rhs_dilate = [2, 2]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"lhs_dilated", "2x5x4x3x$T, 3x3x3x4x$T", "2x9x7x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"reversed", "2x8x9x3x$T, 3x2x3x4x$T", "2x6x8x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {reverse = [true, true]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"negative_padding", "2x8x9x3x$T, 3x3x3x4x$T", "2x5x7x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {pad = [[-1, 0], [1, -1]]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"one_by_one", "2x8x9x3x$T, 1x1x3x5x$T", "2x8x9x5x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"depthwise", "2x8x9x4x$T, 3x3x1x4x$T", "2x6x7x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 4 : i64} : ($A, $B) -> $R"},
    {"feature_groups", "2x6x7x4x$T, 3x3x2x6x$T", "2x4x5x6x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : ($A, $B) -> $R"},
    {"batch_groups", "4x6x7x3x$T, 3x3x3x4x$T", "2x4x5x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {} "
     "{batch_group_count = 2 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"channels_first", "2x3x8x9x$T, 4x3x3x3x$T", "2x4x6x7x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"mixed_layouts", "3x8x9x2x$T, 3x3x3x4x$T", "6x2x7x4x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, b, 1, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"rank1", "2x17x3x$T, 4x3x5x$T", "2x7x5x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f]"
     ", window = {stride = [2]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"rank3", "1x5x4x6x2x$T, 2x2x3x2x3x$T", "1x4x3x4x3x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, "
     "2, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"rank0", "5x7x$T, 7x3x$T", "5x3x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[i, o]->[b, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"window_beyond", "1x2x2x1x$T, 3x3x1x1x$T", "1x2x2x1x$T", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {pad = [[1, 1], [1, 1]]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
};
constexpr TextTemplate kConvolutionWidened[] = {
    {"to_f32", "2x8x9x3x$T, 3x3x3x4x$T", "2x6x7x4xf32", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
    {"to_i32", "2x8x9x3x$T, 3x3x3x4x$T", "2x6x7x4xi32", "data",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
     ", window = {} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B) -> $R"},
};

constexpr TextTemplate kDynamicConv[] = {
    {"padded", "2x8x9x3x$T, 3x3x3x4x$T, 2x2xi64", "2x8x8x4x$T", "data data list:1,1,0,1",
     "%r = \"stablehlo.dynamic_conv\"(%a, %b, %c) {dimension_numbers = #stablehlo.conv<[b, 0, 1, "
     "f]x[0, 1, i, o]->[b, 0, 1, f]>, "
     "batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ($A, $B, $C) -> $R"},
};

// Products of groups of rows, of which one is empty.
constexpr TextTemplate kRaggedDot[] = {
    {"rows", "11x5x$T, 3x5x7x$T, 3xi64", "11x7x$T", "data data list:4,0,7",
     "%r = \"chlo.ragged_dot\"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<"
     "lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
     "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : ($A, $B, $C) -> $R"},
    {"contracted", "5x11x$T, 11x7x$T, 3xi64", "3x5x7x$T", "data data list:4,0,7",
     "%r = \"chlo.ragged_dot\"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<"
     "lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0], "
     "lhs_ragged_dimensions = [1], rhs_group_dimensions = []>} : ($A, $B, $C) -> $R"},
    {"batch", "2x11x5x$T, 3x2x5x7x$T, 2x3xi64", "2x11x7x$T", "data data list:4,0,7,1,9,1",
     "%r = \"chlo.ragged_dot\"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<"
     "lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], "
     "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], "
     "lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>} : ($A, $B, $C) -> $R"},
};

const std::vector<ElementType> kWidened = {
    kS8,     kU8,         kS16,           kS4,         kU4,     kF8E4M3FN, kF8E5M2,
    kF8E4M3, kF8E4M3FNUZ, kF8E4M3B11FNUZ, kF8E5M2FNUZ, kF8E3M4, kBF16,     kF16};

}  // namespace

void add_contraction_cases(CaseList& list) {
  add_text_cases(list, OpCode::kDotGeneral, kDotGeneral);
  add_text_cases(list, OpCode::kDotGeneral, kDotWidened, ProgramCases::kDefaultValues, kWidened);
  add_text_cases(list, OpCode::kDot, kDot);
  add_text_cases(list, OpCode::kEinsum, kEinsum);
  add_text_cases(list, OpCode::kUnaryEinsum, kUnaryEinsum);
  add_text_cases(list, OpCode::kConvolution, kConvolution);
  add_text_cases(list, OpCode::kConvolution, kConvolutionWidened, ProgramCases::kDefaultValues,
                 kWidened);
  add_text_cases(list, OpCode::kDynamicConv, kDynamicConv);
  add_text_cases(list, OpCode::kChloRaggedDot, kRaggedDot);
}

}  // namespace tenon::conformance
