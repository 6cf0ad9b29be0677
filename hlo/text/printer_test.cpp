#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::read;

constexpr std::string_view kProgram = R"(
module @m {
  func.func @main(%x: tensor<2xf32> loc("x":1:1), %p: tensor<i1>) -> tensor<2xf32> {
    %c = stablehlo.constant dense<1.0> : tensor<f32> loc("c":2:2)
    %0:2 = stablehlo.while(%i = %c, %y = %x) : tensor<f32>, tensor<2xf32>
     cond {
      %1 = stablehlo.compare LT, %i, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %2 = stablehlo.reduce(%y init: %i) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %2, %y : tensor<f32>, tensor<2xf32>
    } loc("w":3:3)
    %3 = "stablehlo.if"(%p) ({
      stablehlo.return %0#1 : tensor<2xf32>
    }, {
      stablehlo.return %x : tensor<2xf32>
    }) : (tensor<i1>) -> tensor<2xf32>
    return %3 : tensor<2xf32>
  } loc("f":4:4)
})";

TEST(Printer, HloForm) {
  EXPECT_EQ(print_module(*read(kProgram)), R"(hlo_module @m {
  func.func @main(%arg0: f32[2], %arg1: pred[]) -> (f32[2]) {
    %0 = stablehlo.constant() {value = dense<1.0> : f32[]} : f32[]
    %1:2 = stablehlo.while(%0, %arg0) ({
    ^bb0(%arg2: f32[], %arg3: f32[2]):
      %2 = stablehlo.compare(%arg2, %0) {comparison_direction = LT} : pred[]
      stablehlo.return(%2)
    }, {
    ^bb0(%arg4: f32[], %arg5: f32[2]):
      %3 = stablehlo.reduce(%arg5, %arg4) {dimensions = [0]} ({
      ^bb0(%arg6: f32[], %arg7: f32[]):
        %4 = stablehlo.add(%arg6, %arg7) : f32[]
        stablehlo.return(%4)
      }) : f32[]
      stablehlo.return(%3, %arg5)
    }) : f32[], f32[2]
    %5 = stablehlo.if(%arg1) ({
      stablehlo.return(%1#1)
    }, {
      stablehlo.return(%arg0)
    }) : f32[2]
    stablehlo.return(%5)
  }
}
)");
}

TEST(Printer, StableHloForm) {
  EXPECT_EQ(print_module(*read(kProgram), {TextForm::kStableHlo, false}), R"(module @m {
  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<i1>) -> (tensor<2xf32>) {
    %0 = stablehlo.constant dense<1.0> : tensor<f32>
    %1:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg0) : tensor<f32>, tensor<2xf32>
    cond {
      %2 = stablehlo.compare LT, %arg2, %0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }
    do {
      %3 = stablehlo.reduce(%arg3 init: %arg2) across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
       reducer(%arg4: tensor<f32>, %arg5: tensor<f32>) {
        %4 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %4 : tensor<f32>
      }
      stablehlo.return %3, %arg3 : tensor<f32>, tensor<2xf32>
    }
    %5 = "stablehlo.if"(%arg1) ({
      stablehlo.return %1#1 : tensor<2xf32>
    }, {
      stablehlo.return %arg0 : tensor<2xf32>
    }) : (tensor<i1>) -> tensor<2xf32>
    func.return %5 : tensor<2xf32>
  }
}
)");
}

std::vector<std::string> locations(const Computation& computation) {
  std::vector<std::string> out{location_to_string(computation.location())};
  for (size_t i = 0; i < computation.parameter_count(); ++i) {
    out.push_back(location_to_string(computation.parameter(i).def->location()));
  }
  for (const Instruction& op : computation) {
    out.push_back(location_to_string(op.location()));
    for (size_t i = 0; i < op.region_count(); ++i) {
      const auto inner = locations(op.region(i));
      out.insert(out.end(), inner.begin(), inner.end());
    }
  }
  return out;
}

TEST(Printer, LocationsRoundTripInHloForm) {
  const auto module = read(kProgram);
  const std::string text = print_module(*module, {TextForm::kHlo, true});
  const auto again = read(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(locations(*module->entry()), locations(*again->entry()));
  EXPECT_NE(text.find("loc(\"c\":2:2)"), std::string::npos);
}

TEST(Printer, LocationsOfStableHloFormRead) {
  const auto module = read(kProgram);
  const std::string text = print_module(*module, {TextForm::kStableHlo, true});
  const auto again = read(text);
  ASSERT_TRUE(again) << text;
  EXPECT_TRUE(equal(*module, *again));
  const Instruction* loop = again->entry()->first()->next();
  EXPECT_EQ(location_to_string(loop->location()), "\"w\":3:3");
  EXPECT_EQ(location_to_string(loop->region(1).first()->location()),
            location_to_string(module->entry()->first()->next()->region(1).first()->location()));
}

TEST(Printer, OneInstructionAlone) {
  const auto module = read(kProgram);
  EXPECT_EQ(print_instruction(*module->entry()->first()),
            "%0 = stablehlo.constant() {value = dense<1.0> : f32[]} : f32[]\n");
  EXPECT_EQ(print_instruction(*module->entry()->first(), {TextForm::kStableHlo, false}),
            "%0 = stablehlo.constant dense<1.0> : tensor<f32>\n");
}

// MLIR refuses layouts of one kind alone, even where the other has none.
TEST(Printer, LayoutsOfACallWithoutResults) {
  const auto module = read(R"(
func.func @main(%x: tensor<f32>) {
  stablehlo.custom_call @sink(%x) {operand_layouts = [dense<> : tensor<0xindex>], result_layouts = []} : (tensor<f32>) -> ()
  return
})");
  ASSERT_TRUE(module);
  const std::string text = print_module(*module, {.form = TextForm::kStableHlo});
  EXPECT_NE(text.find("operand_layouts = [dense<> : tensor<0xindex>], result_layouts = []"),
            std::string::npos)
      << text;
  testing::expect_round_trip(*module);
}

TEST(Printer, NamesAndTextsThatNeedQuotes) {
  const auto module = read(R"(
module @"a b" attributes {"k \22" = "v\0A\\"} {
  func.func @"1"() { stablehlo.custom_call @"x y"() {"a b", ".c" = 1 : i64, c.d} : () -> ()  return }
})");
  ASSERT_TRUE(module);
  const std::string text = print_module(*module);
  EXPECT_TRUE(text.starts_with(
      "hlo_module @\"a b\" attributes {\"k \\22\" = \"v\\0A\\5C\"} {\n  func.func @\"1\"() {"))
      << text;
  testing::expect_round_trip(*module);
}

TEST(Printer, SpecialFloats) {
  const auto module = read(
      "func.func @f() -> tensor<5xf32> {\n%0 = stablehlo.constant dense<[0x7F800000, 0xFF800000, "
      "0x7FC00001, -0.0, 1.0e-45]> : tensor<5xf32>\nreturn %0 : tensor<5xf32> }");
  ASSERT_TRUE(module);
  EXPECT_EQ(print_instruction(*module->entry()->first(), {TextForm::kStableHlo, false}),
            "%0 = stablehlo.constant dense<[0x7F800000, 0xFF800000, 0x7FC00001, -0.0, 1.0e-45]> : "
            "tensor<5xf32>\n");
}

TEST(Printer, ParseHloTextChecks) {
  const auto bad = import_module(
      "hlo_module { func.func @f(%x: f32[2]) { %0 = stablehlo.abs(%x) : f32[3]\nstablehlo.return() "
      "} }",
      "t");
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message().starts_with("stablehlo.abs: ")) << bad.error().message();
}

TEST(Printer, WordsOfEnumsAreLegalInHloForm) {
  const auto module = import_module(
      "hlo_module { func.func @f(%x: f32[2]) -> (pred[2]) {\n"
      "%0 = stablehlo.compare(%x, %x) {comparison_direction = LT, compare_type = TOTALORDER} : "
      "pred[2]\n"
      "stablehlo.return(%0) } }",
      "t");
  ASSERT_TRUE(module) << module.error().to_string();
}

}  // namespace
}  // namespace tenon::hlo
