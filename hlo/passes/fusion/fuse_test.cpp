// Fusing instructions.
#include "hlo/passes/fusion/fuse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
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

// --- Convolutions and what follows them

// The names of the ops of each fusion with a convolution in it, where tiles are wide or not.
std::vector<std::vector<std::string>> fused_convolutions(const std::string& body, bool wide) {
  const std::string text = fmt::format(
      R"(func.func @main(%x: tensor<1x8x8x16xf32>, %w: tensor<3x3x16x16xf32>, %b: tensor<16xf32>) -> tensor<1x8x8x16xf32> {{
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<1x8x8x16xf32>
  {}
  return %r : tensor<1x8x8x16xf32>
}})",
      body);
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  PassOptions options;
  options.cost.wide_tiles = wide;
  EXPECT_TRUE(fuse_elements(**module, options) && verify(**module).ok());
  std::vector<std::vector<std::string>> found;
  for (Instruction& op : *(*module)->entry()) {
    if (op.code() != OpCode::kFusion) continue;
    std::vector<std::string> names;
    for (const Instruction& inner : op.region(0)) names.emplace_back(inner.info().short_name());
    std::ranges::sort(names);
    if (std::ranges::find(names, "convolution") != names.end()) found.push_back(names);
  }
  return found;
}

std::string convolution(const std::string& result, const std::string& input) {
  return fmt::format(
      R"(%{} = stablehlo.convolution(%{}, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x8x8x16xf32>)",
      result, input);
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The ops that are left of a concatenation of two slices of a sine of 4,096 elements, which have
// `length` elements each.
size_t ops_of_slices(int64_t length) {
  auto module =
      import_module(fmt::format(R"(func.func @main(%x: tensor<4096xf32>) -> tensor<{1}xf32> {{
  %y = stablehlo.sine %x : tensor<4096xf32>
  %a = stablehlo.slice %y [0:{0}] : (tensor<4096xf32>) -> tensor<{0}xf32>
  %b = stablehlo.slice %y [{2}:4096] : (tensor<4096xf32>) -> tensor<{0}xf32>
  %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<{0}xf32>, tensor<{0}xf32>) -> tensor<{1}xf32>
  return %r : tensor<{1}xf32>
}})",
                                length, 2 * length, 4096 - length),
                    "t");
  EXPECT_TRUE(module) << module.error().to_string();
  EXPECT_TRUE(fuse_elements(**module) && verify(**module).ok());
  size_t ops = 0;
  for (const Instruction& op : *(*module)->entry()) ops += op.code() != OpCode::kReturn ? 1 : 0;
  return ops;
}

TEST(FusedConcatenations, ComputeNoElementTwice) {
  EXPECT_EQ(ops_of_slices(2048), 1U) << "halves";
  EXPECT_EQ(ops_of_slices(4000), 2U) << "they overlap";
}

// A fusion reads a view of an array in memory in place of its reshape: no index is divided.
TEST(FusedReductions, ReadViewsOfArraysInMemory) {
  auto module = import_module(R"(func.func @main(%x: tensor<64x32xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %flat = stablehlo.reshape %x : (tensor<64x32xf32>) -> tensor<2048xf32>
  %y = stablehlo.sine %flat : tensor<2048xf32>
  %r = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
})",
                              "t");
  ASSERT_TRUE(module) << module.error().to_string();
  ASSERT_TRUE(fuse_elements(**module) && verify(**module).ok());
  const std::vector<Instruction*> fusions = ops(**module, {"fusion"});
  ASSERT_EQ(fusions.size(), 1U) << print_module(**module);
  EXPECT_EQ(fusions[0]->operand(0).def->code(), OpCode::kReshape) << print_module(**module);
  EXPECT_EQ(fusions[0]->operand_type(0).rank(), 1);
}

// The fusions of `rounds` times two ops of a chain, which begins with an iota and ends in a product
// with a repeated number.
std::vector<Instruction*> fusions_of_chain(std::unique_ptr<Module>& kept, const std::string& first,
                                           const std::string& second, const std::string& type,
                                           int rounds) {
  std::string text =
      "func.func @main(%k: tensor<TYPE>) -> tensor<4096xTYPE> {\n"
      "  %x0 = stablehlo.iota dim = 0 : tensor<4096xTYPE>\n"
      "  %c = stablehlo.constant dense<3> : tensor<4096xTYPE>\n";
  for (int i = 0; i < rounds; ++i) {
    text += fmt::format("  %y{0} = stablehlo.{1} %x{0}, %c : tensor<4096xTYPE>\n", i, first);
    text +=
        fmt::format("  %x{0} = stablehlo.{2} %y{1}, %x{1} : tensor<4096xTYPE>\n", i + 1, i, second);
  }
  text += fmt::format(
      "  %ks = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<TYPE>) -> tensor<4096xTYPE>\n"
      "  %r = stablehlo.add %x{}, %ks : tensor<4096xTYPE>\n  return %r : tensor<4096xTYPE>\n}}",
      rounds);
  for (size_t at = 0; (at = text.find("TYPE", at)) != std::string::npos;) text.replace(at, 4, type);
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  kept = *std::move(module);
  EXPECT_TRUE(fuse_elements(*kept) && verify(*kept).ok());
  return ops(*kept, {"fusion"});
}

// Integer ops are short: the rounds of a random number are one kernel with its iota and its key,
// where as many ops on floats are two.
TEST(FusedChains, OfIntegersAreLong) {
  std::unique_ptr<Module> module;
  const auto integers = fusions_of_chain(module, "shift_right_logical", "xor", "ui32", 100);
  ASSERT_EQ(integers.size(), 1U);
  EXPECT_EQ(std::ssize(ops(*module, {"iota", "broadcast_in_dim", "xor"})), 0);
  EXPECT_GT(fusions_of_chain(module, "shift_right_logical", "xor", "ui32", 200).size(), 1U);
  EXPECT_GT(fusions_of_chain(module, "divide", "add", "ui32", 70).size(), 1U);
  EXPECT_EQ(fusions_of_chain(module, "multiply", "add", "f32", 30).size(), 1U);
  EXPECT_GT(fusions_of_chain(module, "multiply", "add", "f32", 50).size(), 1U);
  // At the limit, too, what only repeats is no array in memory.
  EXPECT_EQ(std::ssize(ops(*module, {"iota", "broadcast_in_dim"})), 0);
}

// The ops of the fusion of `body`, an op on transposes of %x and others; empty if there is none.
std::vector<std::string> fused_transposes(const std::string& body, int64_t rows, int64_t columns,
                                          int64_t busy_lanes) {
  const auto tensor = [](int64_t a, int64_t b) { return fmt::format("tensor<{}x{}xf32>", a, b); };
  std::string text = fmt::format(
      "func.func @main(%x: FROM, %y: TO, %v: tensor<{0}xf32>) -> TO {{\n"
      "  %t = stablehlo.transpose %x, dims = [1, 0] : (FROM) -> TO\n"
      "  %row = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<{0}xf32>) -> TO\n{1}\n"
      "  return %r : TO\n}}",
      columns, body);
  for (const auto& [name, type] :
       {std::pair("FROM", tensor(rows, columns)), std::pair("TO", tensor(columns, rows))}) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, std::string_view(name).size(), type);
  }
  const auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  PassOptions options;
  options.cost.busy_lanes = busy_lanes;
  EXPECT_TRUE(fuse_elements(**module, options) && verify(**module).ok());
  std::vector<std::string> names;
  for (const Instruction* fusion : ops(**module, {"fusion"})) {
    for (const Instruction& op : fusion->region(0)) names.emplace_back(op.info().short_name());
  }
  return names;
}

TEST(FusedTransposes, JoinTheirReader) {
  const std::string sum = "%r = stablehlo.add %t, %row : TO";
  const std::string product = "%r = stablehlo.multiply %t, %y : TO";
  const std::string exponential =
      "%s = stablehlo.add %t, %t : TO\n%r = stablehlo.exponential %s : TO";
  EXPECT_TRUE(has(fused_transposes(sum, 100, 200, 1), "transpose"));
  // By tiles a core reads no second array, and computes no math function; many lanes do.
  EXPECT_FALSE(has(fused_transposes(product, 100, 200, 1), "transpose"));
  EXPECT_FALSE(has(fused_transposes(exponential, 100, 200, 1), "transpose"));
  EXPECT_TRUE(has(fused_transposes(product, 100, 200, 1024), "transpose"));
  EXPECT_TRUE(has(fused_transposes(exponential, 100, 200, 1024), "transpose"));
  // Short rows take no tiles.
  EXPECT_TRUE(has(fused_transposes(product, 7, 2000, 1), "transpose"));
  EXPECT_TRUE(has(fused_transposes(exponential, 2000, 7, 1), "transpose"));
}

TEST(FusedTransposes, StayAloneIfOthersReadThem) {
  EXPECT_FALSE(has(fused_transposes(R"(
  %a = stablehlo.add %t, %row : TO
  %d = stablehlo.dot_general %t, %y, contracting_dims = [1] x [0] : (TO, TO) -> TO
  %r = stablehlo.add %a, %d : TO)",
                                    100, 100, 1),
                   "transpose"));
}

TEST(FusedTransposes, OfScalarsAndVectorsStay) {
  for (const auto& [type, dims] : {std::pair("f32", "[]"), std::pair("3xf32", "[0]")}) {
    const auto module = import_module(
        fmt::format(R"(func.func @main(%x: tensor<{0}>, %y: tensor<{0}>) -> tensor<{0}> {{
  %t = stablehlo.transpose %x, dims = {1} : (tensor<{0}>) -> tensor<{0}>
  %s = stablehlo.add %t, %y : tensor<{0}>
  return %s : tensor<{0}>
}})",
                    type, dims),
        "t");
    ASSERT_TRUE(module) << module.error().to_string();
    EXPECT_FALSE(fuse_elements(**module).value());
  }
}

// A pad of short rows keeps a kernel of its own if the rows are joined: indices would be divided.
TEST(FusedPads, OfShortRowsStayAlone) {
  for (const auto& [rows, joined] :
       {std::pair("1000x2", "2000"), std::pair("1000x2", "2x1000x1")}) {
    const auto module =
        import_module(fmt::format(R"(func.func @main(%x: tensor<1000x1xf32>) -> tensor<{1}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %zero, low = [0, 0], high = [0, 1], interior = [0, 0]
      : (tensor<1000x1xf32>, tensor<f32>) -> tensor<{0}xf32>
  %r = stablehlo.reshape %p : (tensor<{0}xf32>) -> tensor<{1}xf32>
  %s = stablehlo.sine %r : tensor<{1}xf32>
  %n = stablehlo.negate %s : tensor<{1}xf32>
  return %n : tensor<{1}xf32>
}})",
                                  rows, joined),
                      "t");
    ASSERT_TRUE(module) << module.error().to_string();
    ASSERT_TRUE(fuse_elements(**module) && verify(**module).ok());
    std::vector<std::string> names;
    for (const Instruction* fusion : ops(**module, {"fusion"})) {
      for (const Instruction& op : fusion->region(0)) names.emplace_back(op.info().short_name());
    }
    EXPECT_TRUE(has(names, "negate"));
    EXPECT_EQ(has(names, "pad"), std::string_view(joined) != "2000") << joined;
  }
}

TEST(FusedConvolutions, StoreWhatFollowsThem) {
  const std::string body = convolution("c", "x") + R"(
  %bias = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<16xf32>) -> tensor<1x8x8x16xf32>
  %sum = stablehlo.add %c, %bias : tensor<1x8x8x16xf32>
  %r = stablehlo.maximum %sum, %zero : tensor<1x8x8x16xf32>)";
  const auto found = fused_convolutions(body, true);
  ASSERT_EQ(found.size(), 1U);
  for (const std::string_view name : {"broadcast_in_dim", "add", "maximum"})
    EXPECT_TRUE(has(found[0], name)) << name;
  EXPECT_TRUE(fused_convolutions(body, false).empty());
}

TEST(FusedConvolutions, ReadNothingThatTheyComputeAgain) {
  // The residual is the input too.
  const auto found = fused_convolutions(
      "%y = stablehlo.maximum %x, %zero : tensor<1x8x8x16xf32>\n" + convolution("c", "y") + R"(
  %sum = stablehlo.add %c, %y : tensor<1x8x8x16xf32>
  %r = stablehlo.negate %sum : tensor<1x8x8x16xf32>)",
      true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(has(found[0], "negate"));
  EXPECT_FALSE(has(found[0], "maximum"));
  const auto padded = fused_convolutions(R"(
  %part = stablehlo.slice %x [0:1, 0:8, 0:8, 0:16:2] : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x8xf32>
  %y = stablehlo.pad %part, %none, low = [0, 0, 0, 4], high = [0, 0, 0, 4], interior = [0, 0, 0, 0]
      : (tensor<1x8x8x8xf32>, tensor<f32>) -> tensor<1x8x8x16xf32>)" +
                                             convolution("c", "y") + R"(
  %r = stablehlo.negate %c : tensor<1x8x8x16xf32>)",
                                         true);
  ASSERT_EQ(padded.size(), 1U);
  EXPECT_FALSE(has(padded[0], "pad"));
}

TEST(FusedConvolutions, AreOneInAFusion) {
  const auto found = fused_convolutions(convolution("c", "x") + "\n" + convolution("d", "c") + R"(
  %sum = stablehlo.add %c, %d : tensor<1x8x8x16xf32>
  %r = stablehlo.negate %sum : tensor<1x8x8x16xf32>)",
                                        true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(std::ranges::count(found[0], "convolution"), 1);
}

TEST(FusedConvolutions, EndBeforeReductions) {
  const auto found = fused_convolutions(convolution("c", "x") + R"(
  %n = stablehlo.negate %c : tensor<1x8x8x16xf32>
  %s = stablehlo.reduce(%n init: %none) applies stablehlo.add across dimensions = [3] : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x8x8xf32>
  %r = stablehlo.broadcast_in_dim %s, dims = [0, 1, 2] : (tensor<1x8x8xf32>) -> tensor<1x8x8x16xf32>)",
                                        true);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(has(found[0], "reduce"));
}

}  // namespace
}  // namespace tenon::hlo
