#include "hlo/passes/normalize/refine_shapes.h"

#include <gtest/gtest.h>

#include "hlo/import/import.h"
#include "hlo/text/printer.h"

namespace tenon::hlo {
namespace {

using enum ElementType;

Result<std::unique_ptr<Module>> refined(std::string_view text, const ArgumentKnowledge& known) {
  TENON_ASSIGN(const std::unique_ptr<Module> module, import_module(text, "t"));
  EXPECT_TRUE(is_dynamic(*module));
  return refine(*module, known);
}

// The refined entry as HLO text without its frame, or the error.
std::string body(std::string_view text, const ArgumentKnowledge& known) {
  const auto module = refined(text, known);
  if (!module) return module.error().to_string();
  EXPECT_FALSE(is_dynamic(**module));
  const std::string all = print_module(**module);
  const size_t begin = all.find("func.func") + 10;
  return all.substr(begin, all.rfind("  }\n}") - begin);
}

Literal s64s(const std::vector<int64_t>& values) { return Literal::from_i64s(values); }

struct Case {
  const char* name;
  const char* text;
  ArgumentKnowledge known;
  const char* expected;
};
class Refine : public testing::TestWithParam<Case> {};
TEST_P(Refine, MakesStatic) {
  EXPECT_EQ(body(GetParam().text, GetParam().known), GetParam().expected);
}

const Case kCases[] = {
    {"Elementwise",
     R"(func.func @f(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
})",
     {{{0, {2, 3}}}, {}},
     R"(@f(%arg0: f32[2,3]) -> (f32[2,3]) {
    %0 = stablehlo.add(%arg0, %arg0) : f32[2,3]
    stablehlo.return(%0)
)"},
    {"SizesReachShapes",
     R"(func.func @f(%x: tensor<?xf32>) -> tensor<?x2xf32> {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %1 = stablehlo.constant dense<2> : tensor<1xi32>
  %2 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %3 = stablehlo.concatenate %2, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %4 = stablehlo.dynamic_broadcast_in_dim %x, %3, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x2xf32>
  return %4 : tensor<?x2xf32>
})",
     {{{0, {5}}}, {}},
     R"(@f(%arg0: f32[5]) -> (f32[5,2]) {
    %0 = stablehlo.constant() {value = dense<5> : s32[]} : s32[]
    %1 = stablehlo.constant() {value = dense<2> : s32[1]} : s32[1]
    %2 = stablehlo.constant() {value = dense<5> : s32[1]} : s32[1]
    %3 = stablehlo.constant() {value = dense<[5, 2]> : s32[2]} : s32[2]
    %4 = stablehlo.broadcast_in_dim(%arg0) {broadcast_dimensions = [0]} : f32[5,2]
    stablehlo.return(%4)
)"},
    {"SetDimensionSize",
     R"(func.func @f(%x: tensor<4x3xf32>, %n: tensor<i32>) -> (tensor<?x3xf32>, tensor<i32>) {
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4x3xf32>, tensor<i32>) -> tensor<?x3xf32, #stablehlo.bounds<4, ?>>
  %1 = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x3xf32, #stablehlo.bounds<4, ?>>) -> tensor<i32>
  %2 = stablehlo.convert %0 : (tensor<?x3xf32, #stablehlo.bounds<4, ?>>) -> tensor<?x3xf32>
  return %2, %1 : tensor<?x3xf32>, tensor<i32>
})",
     {{}, {{1, Literal::scalar_integer(ElementType::kS32, 2)}}},
     R"(@f(%arg0: f32[4,3], %arg1: s32[]) -> (f32[2,3], s32[]) {
    %0 = stablehlo.slice(%arg0) {limit_indices = [2, 3], start_indices = [0, 0], strides = [1, 1]} : f32[2,3]
    %1 = stablehlo.constant() {value = dense<2> : s32[]} : s32[]
    %2 = stablehlo.convert(%0) : f32[2,3]
    stablehlo.return(%2, %1)
)"},
    {"Reshape",
     R"(func.func @f(%x: tensor<?x3xf32>, %s: tensor<1xi64>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xf32>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
})",
     {{{0, {2, 3}}}, {}},
     R"(@f(%arg0: f32[2,3], %arg1: s64[1]) -> (f32[6]) {
    %0 = stablehlo.dynamic_reshape(%arg0, %arg1) : f32[6]
    stablehlo.return(%0)
)"},
    {"Iota",
     R"(func.func @f(%s: tensor<1xi64>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
})",
     {{}, {{0, s64s({4})}}},
     R"(@f(%arg0: s64[1]) -> (f32[4]) {
    %0 = stablehlo.iota() {iota_dimension = 0} : f32[4]
    stablehlo.return(%0)
)"},
    {"Pad",
     R"(func.func @f(%x: tensor<?xf32>, %v: tensor<f32>) -> tensor<?xf32> {
  %l = stablehlo.constant dense<1> : tensor<1xi64>
  %h = stablehlo.constant dense<-1> : tensor<1xi64>
  %0 = stablehlo.dynamic_pad %x, %v, %l, %h, %l : (tensor<?xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
})",
     {{{0, {3}}}, {}},
     R"(@f(%arg0: f32[3], %arg1: f32[]) -> (f32[5]) {
    %0 = stablehlo.constant() {value = dense<1> : s64[1]} : s64[1]
    %1 = stablehlo.constant() {value = dense<-1> : s64[1]} : s64[1]
    %2 = stablehlo.pad(%arg0, %arg1) {edge_padding_high = [-1], edge_padding_low = [1], interior_padding = [1]} : f32[5]
    stablehlo.return(%2)
)"},
    {"Slice",
     R"(func.func @f(%x: tensor<?xf32>, %e: tensor<1xi32>) -> tensor<?xf32> {
  %b = stablehlo.constant dense<1> : tensor<1xi32>
  %0 = stablehlo.real_dynamic_slice %x, %b, %e, %b : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
})",
     {{{0, {5}}}, {{1, Literal::scalar_integer(kS32, 4).reshaped({1})}}},
     R"(@f(%arg0: f32[5], %arg1: s32[1]) -> (f32[3]) {
    %0 = stablehlo.constant() {value = dense<1> : s32[1]} : s32[1]
    %1 = stablehlo.slice(%arg0) {limit_indices = [4], start_indices = [1], strides = [1]} : f32[3]
    stablehlo.return(%1)
)"},
    {"Gather",
     R"(func.func @f(%x: tensor<?x3xf32>, %i: tensor<2xi64>) -> tensor<2x?xf32> {
  %s = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %0 = "stablehlo.dynamic_gather"(%x, %i, %s) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>} : (tensor<?x3xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
})",
     {{{0, {4, 3}}}, {}},
     R"(@f(%arg0: f32[4,3], %arg1: s64[2]) -> (f32[2,3]) {
    %0 = stablehlo.constant() {value = dense<[1, 3]> : s64[2]} : s64[2]
    %1 = stablehlo.gather(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = [1, 3]} : f32[2,3]
    stablehlo.return(%1)
)"},
    {"Conv",
     R"(func.func @f(%x: tensor<1x?x1xf32>, %k: tensor<2x1x1xf32>) -> tensor<1x?x1xf32> {
  %p = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi64>
  %0 = "stablehlo.dynamic_conv"(%x, %k, %p) {dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x?x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x?x1xf32>
  return %0 : tensor<1x?x1xf32>
})",
     {{{0, {1, 4, 1}}}, {}},
     R"(@f(%arg0: f32[1,4,1], %arg1: f32[2,1,1]) -> (f32[1,4,1]) {
    %0 = stablehlo.constant() {value = dense<[[1, 0]]> : s64[1,2]} : s64[1,2]
    %1 = stablehlo.convolution(%arg0, %arg1) {batch_group_count = 1, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1, padding = [[1, 0]]} : f32[1,4,1]
    stablehlo.return(%1)
)"},
    {"Calls",
     R"(func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @g(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @g(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.abs %x : tensor<?xf32>
  return %0 : tensor<?xf32>
})",
     {{{0, {2}}}, {}},
     R"(@main(%arg0: f32[2]) -> (f32[2]) {
    %0 = stablehlo.abs(%arg0) : f32[2]
    stablehlo.return(%0)
)"},
    {"While",
     R"(func.func @f(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
  %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<?xf32>
   cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.negate %y : tensor<?xf32>
    stablehlo.return %i, %1 : tensor<i32>, tensor<?xf32>
  }
  return %0#1 : tensor<?xf32>
})",
     {{{0, {2}}}, {}},
     R"(@f(%arg0: f32[2], %arg1: s32[]) -> (f32[2]) {
    %0:2 = stablehlo.while(%arg1, %arg0) ({
    ^bb0(%arg2: s32[], %arg3: f32[2]):
      %1 = stablehlo.compare(%arg2, %arg1) {comparison_direction = LT} : pred[]
      stablehlo.return(%1)
    }, {
    ^bb0(%arg4: s32[], %arg5: f32[2]):
      %2 = stablehlo.negate(%arg5) : f32[2]
      stablehlo.return(%arg4, %2)
    }) : s32[], f32[2]
    stablehlo.return(%0#1)
)"},
    {"IfAndCase",
     R"(func.func @f(%x: tensor<?xf32>, %p: tensor<i1>, %i: tensor<i32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<?xf32>
  }, {
    %1 = stablehlo.negate %x : tensor<?xf32>
    stablehlo.return %1 : tensor<?xf32>
  }) : (tensor<i1>) -> tensor<?xf32>
  %2 = "stablehlo.case"(%i) ({ stablehlo.return %0 : tensor<?xf32> }) : (tensor<i32>) -> tensor<?xf32>
  return %0, %2 : tensor<?xf32>, tensor<?xf32>
})",
     {{{0, {2}}}, {}},
     R"(@f(%arg0: f32[2], %arg1: pred[], %arg2: s32[]) -> (f32[2], f32[2]) {
    %0 = stablehlo.if(%arg1) ({
      stablehlo.return(%arg0)
    }, {
      %1 = stablehlo.negate(%arg0) : f32[2]
      stablehlo.return(%1)
    }) : f32[2]
    %2 = stablehlo.case(%arg2) ({
      stablehlo.return(%0)
    }) : f32[2]
    stablehlo.return(%0, %2)
)"},
    {"Reduce",
     R"(func.func @f(%x: tensor<?x3xf32>, %i: tensor<f32>) -> tensor<?xf32> {
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [1] : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
})",
     {{{0, {2, 3}}}, {}},
     R"(@f(%arg0: f32[2,3], %arg1: f32[]) -> (f32[2]) {
    %0 = stablehlo.reduce(%arg0, %arg1) {dimensions = [1]} ({
    ^bb0(%arg2: f32[], %arg3: f32[]):
      %1 = stablehlo.add(%arg2, %arg3) : f32[]
      stablehlo.return(%1)
    }) : f32[2]
    stablehlo.return(%0)
)"},
    {"TypesThatOperandsLeaveOpen",
     R"(func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2x4xi8> {
  %0 = stablehlo.convert %x : (tensor<?x2xf32>) -> tensor<?x2xf16>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1] : (tensor<?x2xf16>, tensor<?x2xf16>) -> tensor<?x?xf32>
  %2 = stablehlo.bitcast_convert %x : (tensor<?x2xf32>) -> tensor<?x2x4xi8>
  return %2 : tensor<?x2x4xi8>
})",
     {{{0, {3, 2}}}, {}},
     R"(@f(%arg0: f32[3,2]) -> (s8[3,2,4]) {
    %0 = stablehlo.convert(%arg0) : f16[3,2]
    %1 = stablehlo.dot_general(%0, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : f32[3,3]
    %2 = stablehlo.bitcast_convert(%arg0) : s8[3,2,4]
    stablehlo.return(%2)
)"},
};
INSTANTIATE_TEST_SUITE_P(Table, Refine, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

// --- Errors

constexpr const char* kReshape =
    R"(func.func @f(%x: tensor<?x?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
})";

TEST(RefineError, SizesThatAreMissingWrongOrTooMany) {
  EXPECT_EQ(body(kReshape, {}),
            "error: parameter 0 of @f is f32[?,?]: give its sizes, as --shape 0=2x3");
  EXPECT_EQ(body(kReshape, {{{0, {1, 2, 3}}}, {}}),
            "error: parameter 0 of @f is f32[?,?]; it cannot have the sizes 1x2x3");
  EXPECT_EQ(body(kReshape, {{{1, {3}}}, {}}),
            "error: parameter 0 of @f is f32[?,?]: give its sizes, as --shape 0=2x3");
  EXPECT_EQ(body(kReshape, {{{0, {2, 2}}, {1, {3}}}, {}}),
            "error: parameter 1 of @f is s64[2]; it cannot have the sizes 3");
  EXPECT_EQ(body(kReshape, {{{7, {3}}}, {}}), "error: there is no parameter 7; @f has 2");
  EXPECT_EQ(body(kReshape, {{{0, {-1, 2}}}, {}}),
            "error: dimension size -1 is negative or not known");
}

TEST(RefineError, ASizeThatDependsOnAnUnknownValue) {
  EXPECT_EQ(body(kReshape, {{{0, {2, 3}}}, {}}),
            "t:2:8: error: stablehlo.dynamic_reshape: the result f32[?,?] does not follow from the "
            "argument "
            "shapes; give the value of the integer arguments that it depends on with --arg");
}

TEST(RefineError, ValuesThatMakeNoShape) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{-1, -6}, {4, 4}, {INT64_MAX, INT64_MAX}, {INT64_MIN, 1}}) {
    const std::string error = body(kReshape, {{{0, {2, 3}}}, {{1, s64s(sizes)}}});
    EXPECT_TRUE(error.starts_with("t:2:8: error: stablehlo.reshape: ")) << error;
  }
}

TEST(RefineError, SizesWithoutMeasureDoNotOverflow) {
  const std::string error = body(
      "func.func @f(%x: tensor<?xf32>) -> tensor<?x4611686018427387904x4xf32> {\n"
      "  %0 = stablehlo.reshape %x : (tensor<?xf32>) -> tensor<?x4611686018427387904x4xf32>\n"
      "  return %0 : tensor<?x4611686018427387904x4xf32>\n}",
      {{{0, {2}}}, {}});
  EXPECT_NE(error.find("error: "), std::string::npos) << error;
}

TEST(RefineError, NoEntry) {
  Module module;
  EXPECT_EQ(refine(module, {}).error().message(), "there is no entry function to refine");
}

TEST(RefineError, StageIsNamed) { EXPECT_EQ(refined(kReshape, {}).error().stage(), "refine"); }

TEST(RefineModule, AnotherFunctionThanTheEntry) {
  const auto module = import_module(
      "func.func @main() { return }\nfunc.func @g(%x: tensor<?xf32>) -> tensor<?xf32> { "
      "return %x : tensor<?xf32> }",
      "t");
  ASSERT_TRUE(module);
  const auto made = refine(**module, {{{0, {2}}}, {}, "g"});
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ((*made)->find_function("main"), nullptr);
  EXPECT_EQ((*made)->find_function("g")->parameter(0).type().to_string(), "f32[2]");
  EXPECT_EQ(refine(**module, {{}, {}, "h"}).error().message(),
            "there is no entry function to refine");
}

TEST(RefineModule, TheOriginalIsUntouched) {
  const auto module = import_module(kReshape, "t");
  ASSERT_TRUE(module);
  const std::string before = print_module(**module);
  ASSERT_TRUE(refine(**module, {{{0, {2, 3}}}, {{1, s64s({3, 2})}}}));
  EXPECT_EQ(print_module(**module), before);
}

}  // namespace
}  // namespace tenon::hlo
