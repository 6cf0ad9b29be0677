// Custom calls: the interface that their steps keep, and the order of dimensions in memory.
#include "hlo/lower/foreign_calls.h"

#include <gtest/gtest.h>

#include "core/program/interpreter.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::hlo {
namespace {

Result<program::Program> lowered(const std::string& text) {
  const auto module = import_module(text, "t");
  if (!module) return Error(module.error());
  return compile_to_program(**module);
}

const program::CustomCall* call_of(const program::Program& program) {
  for (const program::Step& step : program.sequences[0].steps) {
    if (const auto* call = std::get_if<program::CustomCall>(&step.action)) return call;
  }
  return nullptr;
}

Literal counting(const Dims& dims) {
  Literal literal(Shape(ElementType::kF32, dims));
  for (int64_t i = 0; i < literal.element_count(); ++i)
    literal.set_double(i, static_cast<double>(i));
  return literal;
}

// The call gets the transpose in memory, and gives one: as a function of arrays it does nothing.
TEST(ForeignCalls, LayoutsBecomeTransposes) {
  const auto program = lowered(R"(
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = stablehlo.custom_call @same(%x) {operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[0, 1, 2]> : tensor<3xindex>]} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
})");
  ASSERT_TRUE(program) << program.error().to_string();
  const auto foreign = program::foreign_of(*program, *call_of(*program));
  ASSERT_TRUE(foreign) << foreign.error().to_string();
  EXPECT_EQ(foreign->operands[0].minor_to_major, (Dims{1, 2, 0}));
  EXPECT_EQ(foreign->results[0].minor_to_major, (Dims{0, 1, 2}));
  program::ProgramInterpreter interpreter(*program);
  int calls = 0;
  interpreter.set_custom_call(
      "same",
      [&](const program::Step&, const program::CustomCall&, const std::vector<Literal>& operands,
          const std::vector<Shape>& results) -> Result<std::vector<Literal>> {
        ++calls;
        EXPECT_EQ(operands[0].shape().dims(), (Dims{2, 4, 3}));
        EXPECT_EQ(foreign->operands[0].dims_of({2, 4, 3}), (Dims{2, 3, 4}));
        EXPECT_EQ(results[0].dims(), (Dims{4, 3, 2}));
        EXPECT_EQ(foreign->results[0].dims_of({4, 3, 2}), (Dims{2, 3, 4}));
        Literal result(results[0]);
        for (int64_t i = 0; i < 2; ++i) {
          for (int64_t j = 0; j < 3; ++j) {
            for (int64_t k = 0; k < 4; ++k) {
              result.set((k * 3 + j) * 2 + i, operands[0].get<float>((i * 4 + k) * 3 + j));
            }
          }
        }
        return std::vector{result};
      });
  const std::vector<Literal> arguments = {counting({2, 3, 4})};
  const auto results = interpreter.run(arguments);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0], arguments[0]);
  EXPECT_EQ(calls, 1);
}

TEST(ForeignCalls, StepsKeepTokensAliasesAndAttributes) {
  const auto program = lowered(R"(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = stablehlo.custom_call @mine(%t, %x) {has_side_effect = true, backend_config = "", mhlo.backend_config = {deep = {a = 1 : i32, b = "b"}, flag = true, list = array<i32: 1, 2>, real = 2.5 : f32, text = "t"}, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>]} : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
})");
  ASSERT_TRUE(program) << program.error().to_string();
  const auto foreign = program::foreign_of(*program, *call_of(*program));
  ASSERT_TRUE(foreign) << foreign.error().to_string();
  ASSERT_EQ(foreign->operands.size(), 2U);
  EXPECT_TRUE(foreign->operands[0].is_token);
  EXPECT_FALSE(foreign->operands[1].is_token);
  EXPECT_TRUE(foreign->results[0].is_token);
  EXPECT_EQ(foreign->aliases, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}}));
  Literal list(Shape(ElementType::kS32, {2}));
  list.set_integer(0, 1);
  list.set_integer(1, 2);
  const std::string deep = std::string("deep") + program::kWithin;
  const std::vector<program::ForeignAttribute> expected = {
      {deep + "a", Literal::scalar_integer(ElementType::kS32, 1)}, {deep + "b", "b"},
      {"flag", Literal::scalar_integer(ElementType::kPred, 1)},    {"list", list},
      {"real", Literal::scalar(ElementType::kF32, 2.5)},           {"text", "t"}};
  EXPECT_EQ(foreign->attributes, expected);
}

// A token has no memory to share, and a tuple no arrays.
TEST(ForeignCalls, AliasesOfTokensAndLayoutsOfTuplesAreLeft) {
  const auto tokens = lowered(R"(
func.func @main(%x: tensor<4xf32>) -> tensor<9xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = stablehlo.custom_call @mine(%t, %x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]} : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<9xf32>)
  return %0#1 : tensor<9xf32>
})");
  ASSERT_TRUE(tokens) << tokens.error().to_string();
  const auto foreign = program::foreign_of(*tokens, *call_of(*tokens));
  ASSERT_TRUE(foreign) << foreign.error().to_string();
  EXPECT_TRUE(foreign->aliases.empty());
  const auto tuple = lowered(R"(
func.func @main(%x: tensor<2x3xf32>) -> tuple<tensor<2x3xf32>, tensor<2x3xf32>> {
  %0 = stablehlo.custom_call @mine(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tuple<tensor<2x3xf32>, tensor<2x3xf32>>
  return %0 : tuple<tensor<2x3xf32>, tensor<2x3xf32>>
})");
  ASSERT_FALSE(tuple);
}

TEST(ForeignCalls, NamesOfAttributesHaveNoSeparator) {
  const auto program = lowered(R"(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @mine(%x) {mhlo.backend_config = {"a\1Fb" = 1 : i32}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})");
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message().find("U+001F"), std::string::npos)
      << program.error().to_string();
}

// Programs of plain calls stay readable for earlier releases.
TEST(ForeignCalls, APlainCallKeepsNothing) {
  const auto program = lowered(R"(
func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.custom_call @mine(%x) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
})");
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_TRUE(call_of(*program)->config.empty());
  EXPECT_EQ(program->sequences[0].steps.size(), 1U);
}

}  // namespace
}  // namespace tenon::hlo
