// Fusing instructions.
#include "hlo/passes/fusion/fuse.h"

#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

constexpr const char* kProgram = R"(
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = stablehlo.add %x, %y : tensor<3xf32>
  %b = stablehlo.sine %a : tensor<3xf32>
  %c = stablehlo.multiply %a, %a : tensor<3xf32>
  %d = stablehlo.subtract %c, %b : tensor<3xf32>
  return %d, %c : tensor<3xf32>, tensor<3xf32>
})";

std::unique_ptr<Module> program() { return std::move(*import_module(kProgram, "t")); }

// The instructions of the entry with these names, in the given order.
std::vector<Instruction*> ops(const Module& module, const std::vector<std::string_view>& names) {
  std::vector<Instruction*> found;
  for (const std::string_view name : names) {
    for (Instruction& op : *module.entry()) {
      if (op.info().short_name() == name) found.push_back(&op);
    }
  }
  return found;
}

std::vector<Literal> results_of(const Module& module) {
  Literal x(Shape(ElementType::kF32, {3}));
  for (int64_t i = 0; i < 3; ++i) x.set_double(i, static_cast<double>(i) - 0.5);
  const std::vector<Literal> arguments = {x, x};
  return Evaluator(module).run(*module.entry(), arguments).value();
}

TEST(Fuse, ComputesTheSame) {
  const auto plain = program();
  for (const auto& names :
       std::vector<std::vector<std::string_view>>{{"add"},
                                                  {"add", "multiply"},
                                                  {"multiply", "add", "subtract", "sine"},
                                                  {"sine", "multiply"}}) {
    const auto module = program();
    const auto fusion = fuse(ops(*module, names), "loop");
    ASSERT_TRUE(fusion) << fusion.error().to_string();
    EXPECT_EQ((*fusion)->text(AttrKey::fusion_kind), "loop");
    EXPECT_TRUE(verify(*module).ok()) << verify(*module).to_string() << print_module(*module);
    EXPECT_EQ(results_of(*module), results_of(*plain));
  }
}

TEST(Fuse, OperandsAndResultsAreWhatCrosses) {
  const auto module = program();
  const auto fusion = fuse(ops(*module, {"add", "multiply"}));
  ASSERT_TRUE(fusion);
  EXPECT_EQ((*fusion)->operand_count(), 2u);
  EXPECT_EQ((*fusion)->result_count(), 2u);
  // An instruction that needs a result follows the fusion.
  EXPECT_EQ(module->entry()->first(), *fusion);
  EXPECT_EQ((*fusion)->next()->info().short_name(), "sine");
}

TEST(Fuse, Errors) {
  const auto module = program();
  const auto message = [&](const std::vector<Instruction*>& list) {
    const auto fusion = fuse(list);
    return fusion ? "" : fusion.error().message();
  };
  EXPECT_EQ(message({}), "fuse: there is nothing to fuse");
  EXPECT_EQ(message(ops(*module, {"add", "subtract"})),
            "fuse: stablehlo.subtract needs an instruction that needs the fusion");
  EXPECT_EQ(message(ops(*module, {"return"})), "fuse: stablehlo.return has an effect");
  const auto other = program();
  EXPECT_EQ(message({ops(*module, {"add"})[0], ops(*other, {"sine"})[0]}).substr(0, 16),
            "fuse: stablehlo.");
  EXPECT_TRUE(equal(*module, *program()));
}

// The call that prints a moves after the fusion, and so does the call that prints n after it.
TEST(Fuse, EffectsStayInOrder) {
  auto module = std::move(*import_module(R"(
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = stablehlo.add %x, %x : tensor<3xf32>
  stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<3xf32>) -> ()
  %n = stablehlo.negate %x : tensor<3xf32>
  stablehlo.custom_call @print(%n) {has_side_effect = true} : (tensor<3xf32>) -> ()
  %b = stablehlo.multiply %x, %x : tensor<3xf32>
  return %b : tensor<3xf32>
})",
                                         "t"));
  ASSERT_TRUE(fuse(ops(*module, {"add", "multiply"})));
  std::vector<std::string> order;
  for (const Instruction& op : *module->entry()) order.emplace_back(op.info().short_name());
  EXPECT_EQ(order,
            (std::vector<std::string>{"negate", "fusion", "custom_call", "custom_call", "return"}));
  const Instruction* first = module->entry()->first()->next()->next();
  EXPECT_EQ(first->operand(0).def->code(), OpCode::kFusion);
}

// An op that sends within a region stays after the one that sent before it.
TEST(Fuse, EffectsWithinRegionsStayInOrder) {
  auto module = std::move(*import_module(R"(
func.func @main(%x: tensor<3xf32>, %p: tensor<i1>) -> tensor<3xf32> {
  %a = stablehlo.add %x, %x : tensor<3xf32>
  %s = "stablehlo.all_reduce"(%a) ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %t = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %t : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<3xf32>) -> tensor<3xf32>
  %i = "stablehlo.if"(%p) ({
    %u = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64,
      replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<3xf32>) -> tensor<3xf32>
    stablehlo.return %u : tensor<3xf32>
  }, {
    stablehlo.return %x : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  %b = stablehlo.multiply %x, %x : tensor<3xf32>
  %c = stablehlo.subtract %s, %i : tensor<3xf32>
  %d = stablehlo.divide %b, %c : tensor<3xf32>
  return %d : tensor<3xf32>
})",
                                         "t"));
  ASSERT_TRUE(fuse(ops(*module, {"add", "multiply"})));
  std::vector<std::string> order;
  for (const Instruction& op : *module->entry()) order.emplace_back(op.info().short_name());
  EXPECT_EQ(order, (std::vector<std::string>{"fusion", "all_reduce", "if", "subtract", "divide",
                                             "return"}));
}

TEST(Fuse, ConstantsAreCopied) {
  auto module = std::move(*import_module(R"(
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %c = stablehlo.constant dense<2.0> : tensor<3xf32>
  %a = stablehlo.add %x, %c : tensor<3xf32>
  return %a, %c : tensor<3xf32>, tensor<3xf32>
})",
                                         "t"));
  const auto fusion = fuse(ops(*module, {"constant", "add"}));
  ASSERT_TRUE(fusion) << fusion.error().to_string();
  EXPECT_EQ((*fusion)->operand_count(), 1u);
  EXPECT_EQ((*fusion)->result_count(), 1u);
  EXPECT_EQ(module->entry()->return_instruction()->operand(1).def->code(), OpCode::kConstant);
  EXPECT_TRUE(verify(*module).ok()) << verify(*module).to_string();
}

}  // namespace
}  // namespace tenon::hlo
