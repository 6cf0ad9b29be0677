// Ops whose sizes are operands: as programs of dynamic shapes have them once the shapes are known.
#include "conformance/cases/text_program.h"

namespace tenon::conformance {
namespace {

using hlo::OpCode;
using enum ElementType;

constexpr TextTemplate kDynamicBroadcastInDim[] = {
    {"rows", "5x$T", "4x5x$T", "data",
     "%k = stablehlo.constant dense<[4, 5]> : tensor<2xi64>\n"
     "%m = stablehlo.dynamic_broadcast_in_dim %a, %k, dims = [1] : ($A, tensor<2xi64>) -> $R\n"
     "%r = stablehlo.maximum %m, %m : $R"},
    {"expands_one", "4x1x$T", "4x5x$T", "data",
     "%k = stablehlo.constant dense<[4, 5]> : tensor<2xi32>\n"
     "%m = stablehlo.dynamic_broadcast_in_dim %a, %k, dims = [0, 1] : ($A, tensor<2xi32>) -> $R\n"
     "%r = stablehlo.maximum %m, %m : $R"}};
constexpr TextTemplate kDynamicReshape[] = {
    {"flat", "4x6x$T, 24x$T", "24x$T", "data",
     "%k = stablehlo.constant dense<[24]> : tensor<1xi64>\n"
     "%m = stablehlo.dynamic_reshape %a, %k : ($A, tensor<1xi64>) -> $R\n"
     "%r = stablehlo.maximum %m, %b : $R"}};
constexpr TextTemplate kDynamicIota[] = {
    {"rows", "i32", "4x5x$T", "data",
     "%k = stablehlo.constant dense<[4, 5]> : tensor<2xi64>\n"
     "%m = stablehlo.dynamic_iota %k, dim = 0 : (tensor<2xi64>) -> $R\n"
     "%r = stablehlo.add %m, %m : $R"}};
constexpr TextTemplate kDynamicPad[] = {
    {"both_sides", "3x4x$T, $T", "8x5x$T", "data",
     "%l = stablehlo.constant dense<[2, -1]> : tensor<2xi64>\n"
     "%h = stablehlo.constant dense<[1, 2]> : tensor<2xi64>\n"
     "%i = stablehlo.constant dense<[1, 0]> : tensor<2xi64>\n"
     "%m = stablehlo.dynamic_pad %a, %b, %l, %h, %i : ($A, $B, tensor<2xi64>, tensor<2xi64>, "
     "tensor<2xi64>) -> $R\n"
     "%r = stablehlo.maximum %m, %m : $R"}};
constexpr TextTemplate kDynamicGather[] = {
    {"rows", "6x5x$T, 4x1xi32", "4x5x$T", "data ints:-2:9",
     "%k = stablehlo.constant dense<[1, 5]> : tensor<2xi32>\n"
     "%m = \"stablehlo.dynamic_gather\"(%a, %b, %k) {dimension_numbers = #stablehlo.gather<"
     "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 1>, indices_are_sorted = false} : ($A, $B, tensor<2xi32>) -> $R\n"
     "%r = stablehlo.maximum %m, %m : $R"}};
constexpr TextTemplate kRealSlice[] = {
    {"strided", "9x7x$T", "4x3x$T", "data",
     "%k = stablehlo.constant dense<[1, 2]> : tensor<2xi64>\n"
     "%l = stablehlo.constant dense<[9, 5]> : tensor<2xi64>\n"
     "%s0 = stablehlo.constant dense<[2, 1]> : tensor<2xi64>\n"
     "%m = stablehlo.real_dynamic_slice %a, %k, %l, %s0 : ($A, tensor<2xi64>, tensor<2xi64>, "
     "tensor<2xi64>) -> $R\n"
     "%r = stablehlo.maximum %m, %m : $R"}};
constexpr TextTemplate kDimensionSize[] = {
    {"rows", "4x5x$T, i32", "i32", "data",
     "%m = stablehlo.get_dimension_size %a, dim = 1 : ($A) -> tensor<i32>\n"
     "%r = stablehlo.add %m, %b : $R"}};

}  // namespace

void add_dynamic_cases(CaseList& list) {
  add_text_cases(list, OpCode::kDynamicBroadcastInDim, kDynamicBroadcastInDim);
  add_text_cases(list, OpCode::kDynamicReshape, kDynamicReshape);
  add_text_cases(list, OpCode::kDynamicIota, kDynamicIota, kOrdinaryValues);
  add_text_cases(list, OpCode::kDynamicPad, kDynamicPad);
  add_text_cases(list, OpCode::kDynamicGather, kDynamicGather);
  add_text_cases(list, OpCode::kRealDynamicSlice, kRealSlice);
  add_text_cases(list, OpCode::kGetDimensionSize, kDimensionSize, kOrdinaryValues);
}

}  // namespace tenon::conformance
