// Arrays that are stacked and taken apart become their parts: the pass keeps the results, and
// leaves alone what would be stacked as often.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "hlo/verify/verify.h"

namespace tenon::hlo {
namespace {

std::vector<Literal> results_of_small(const Module& module) {
  Random random(5);
  std::vector<Literal> arguments;
  for (size_t p = 0; p < module.entry()->parameter_count(); ++p) {
    Literal& x = arguments.emplace_back(module.entry()->parameter(p).type().shape());
    for (int64_t i = 0; i < x.element_count(); ++i)
      x.set_double(i, static_cast<double>(random.below(9)));
  }
  auto results = Evaluator(module).run(*module.entry(), arguments);
  EXPECT_TRUE(results) << results.error().to_string();
  return results ? *results : std::vector<Literal>();
}

int64_t ops_of(const Module& module, OpCode code) {
  int64_t found = 0;
  any_instruction(*module.entry(), [&](const Instruction& op) {
    found += op.code() == code ? 1 : 0;
    return false;
  });
  return found;
}

// The program after the pass; null if it changed nothing.
std::unique_ptr<Module> split_module(const std::string& text) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string() << "\n" << text;
  const std::vector<Literal> before = results_of_small(**module);
  const auto changed = split_stacks(**module);
  EXPECT_TRUE(changed) << changed.error().to_string();
  EXPECT_TRUE(verify(**module).ok()) << verify(**module).to_string();
  EXPECT_EQ(results_of_small(**module), before) << text;
  return *changed ? *std::move(module) : nullptr;
}

// Two columns of %x, stacked in turn, with `ops` between the stack %s and %t, which is taken apart.
std::string swapped(const std::string& ops, const std::string& type = "f32") {
  std::string text =
      R"(func.func @main(%a: tensor<64xT>, %b: tensor<64xT>) -> (tensor<64x1xT>, tensor<64x1xT>) {
  %z = stablehlo.constant dense<0> : tensor<T>
  %two = stablehlo.constant dense<2> : tensor<64x2xT>
  %p = stablehlo.reshape %a : (tensor<64xT>) -> tensor<64x1xT>
  %q = stablehlo.reshape %b : (tensor<64xT>) -> tensor<64x1xT>
  %s = stablehlo.concatenate %p, %q, dim = 1 : (tensor<64x1xT>, tensor<64x1xT>) -> tensor<64x2xT>
)" + ops +
      R"(
  %u = stablehlo.slice %t [0:64, 0:1] : (tensor<64x2xT>) -> tensor<64x1xT>
  %v = stablehlo.slice %t [0:64, 1:2] : (tensor<64x2xT>) -> tensor<64x1xT>
  return %v, %u : tensor<64x1xT>, tensor<64x1xT>
})";
  for (size_t at = 0; (at = text.find("xT", at)) != std::string::npos;)
    text.replace(at, 2, "x" + type);
  for (size_t at = 0; (at = text.find("<T>", at)) != std::string::npos;)
    text.replace(at, 3, "<" + type + ">");
  return text;
}

TEST(SplitStacks, ThroughOpsOfEachKind) {
  const std::string types = " : (tensor<64x2xT>) -> tensor<64x2xT>";
  for (const std::string ops : {
           "%t = stablehlo.multiply %s, %two : tensor<64x2xT>",
           "%i = stablehlo.iota dim = 1 : tensor<64x2xT>\n%t = stablehlo.add %s, %i : "
           "tensor<64x2xT>",
           "%i = stablehlo.iota dim = 0 : tensor<64x2xT>\n%t = stablehlo.add %s, %i : "
           "tensor<64x2xT>",
           "%w = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<64xT>) -> tensor<64x2xT>\n"
           "%t = stablehlo.add %s, %w : tensor<64x2xT>",
           "%w = stablehlo.broadcast_in_dim %p, dims = [0, 1] : (tensor<64x1xT>) -> "
           "tensor<64x2xT>\n"
           "%t = stablehlo.add %s, %w : tensor<64x2xT>",
           "%r = stablehlo.reshape %s : (tensor<64x2xT>) -> tensor<8x8x2xT>\n"
           "%f = stablehlo.transpose %r, dims = [1, 0, 2] : (tensor<8x8x2xT>) -> tensor<8x8x2xT>\n"
           "%t = stablehlo.reshape %f : (tensor<8x8x2xT>) -> tensor<64x2xT>",
           "%t = stablehlo.reverse %s, dims = [0] : tensor<64x2xT>",
           "%e = stablehlo.slice %s [0:32, 0:2] : (tensor<64x2xT>) -> tensor<32x2xT>\n"
           "%t = stablehlo.concatenate %e, %e, dim = 0 : (tensor<32x2xT>, tensor<32x2xT>) -> "
           "tensor<64x2xT>",
           "%e = stablehlo.slice %s [0:63, 0:2] : (tensor<64x2xT>) -> tensor<63x2xT>\n"
           "%t = stablehlo.pad %e, %z, low = [1, 0], high = [0, 0], interior = [0, 0] : "
           "(tensor<63x2xT>, tensor<T>) -> tensor<64x2xT>",
           "%w = stablehlo.pad %p, %z, low = [0, 1], high = [0, 0], interior = [0, 0] : "
           "(tensor<64x1xT>, tensor<T>) -> tensor<64x2xT>\n"
           "%t = stablehlo.add %s, %w : tensor<64x2xT>",
           "%m = stablehlo.minimum %s, %two : tensor<64x2xT>\n%t = stablehlo.clamp %z, %m, %two : "
           "(tensor<T>, tensor<64x2xT>, tensor<64x2xT>) -> tensor<64x2xT>",
       }) {
    const auto module = split_module(swapped(ops));
    ASSERT_NE(module, nullptr) << ops;
    EXPECT_EQ(ops_of(*module, OpCode::kConcatenate),
              ops.find("%e, %e") == std::string::npos ? 0 : 2)
        << ops;
  }
}

// Sums, arguments of maxima and prefixes of the parts of each row become elementwise ops; one of
// narrow floats is rounded once, and stays.
TEST(SplitStacks, ReductionsOfParts) {
  const auto text = [](const std::string& type, const std::string& op) {
    const std::string row = "tensor<64x2x" + type + ">", one = "tensor<64x" + type + ">";
    return "func.func @main(%a: tensor<64x1x" + type + ">, %b: tensor<64x1x" + type + ">) -> " +
           one + " {\n%z = stablehlo.constant dense<3> : tensor<" + type + ">\n" +
           "%s = stablehlo.concatenate %a, %b, dim = 1 : (tensor<64x1x" + type + ">, tensor<64x1x" +
           type + ">) -> " + row + "\n%r = stablehlo.reduce(%s init: %z) applies stablehlo." + op +
           " across dimensions = [1] : (" + row + ", tensor<" + type + ">) -> " + one +
           "\nreturn %r : " + one + "\n}";
  };
  for (const std::string type : {"f32", "i32", "i8"}) {
    for (const std::string op : {"add", "maximum", "multiply"}) {
      const auto module = split_module(text(type, op));
      ASSERT_NE(module, nullptr) << type << op;
      EXPECT_EQ(ops_of(*module, OpCode::kReduce), 0);
    }
  }
  EXPECT_EQ(split_module(text("bf16", "add")), nullptr);
  EXPECT_NE(split_module(text("bf16", "maximum")), nullptr);
  const auto module = split_module(R"(
func.func @main(%a: tensor<64x1xf32>, %b: tensor<64x1xf32>, %c: tensor<64x1xf32>) -> (tensor<64xf32>, tensor<64xi32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %s = stablehlo.concatenate %a, %b, %c, dim = 1 : (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x3xf32>
  %w = "stablehlo.reduce_window"(%s, %z) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %q = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %q : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>} : (tensor<64x3xf32>, tensor<f32>) -> tensor<64x3xf32>
  %i = stablehlo.iota dim = 1 : tensor<64x3xi32>
  %r:2 = stablehlo.reduce(%w init: %z), (%i init: %n) across dimensions = [1] : (tensor<64x3xf32>, tensor<64x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<64xf32>, tensor<64xi32>)
   reducer(%x: tensor<f32>, %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) {
    %g = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = stablehlo.select %g, %x, %y : tensor<i1>, tensor<f32>
    %k = stablehlo.select %g, %u, %v : tensor<i1>, tensor<i32>
    stablehlo.return %m, %k : tensor<f32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xi32>
})");
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(ops_of(*module, OpCode::kReduce) + ops_of(*module, OpCode::kReduceWindow), 0);
}

// Padding of a window has the initial value, which then counts several times; a region may return a
// value from outside; a pad that cuts a wide array to a few columns makes no part of each.
TEST(SplitStacks, WhatReviewsFound) {
  const std::string head =
      R"(func.func @main(%a: tensor<32x1xf32>, %b: tensor<32x1xf32>, %k: tensor<f32>) -> )";
  const std::string stack =
      "%s = stablehlo.concatenate %a, %b, dim = 1 : (tensor<32x1xf32>, tensor<32x1xf32>) -> "
      "tensor<32x2xf32>\n";
  const std::string columns =
      "%u = stablehlo.slice %w [0:32, 0:1] : (tensor<32x2xf32>) -> tensor<32x1xf32>\n"
      "%v = stablehlo.slice %w [0:32, 1:2] : (tensor<32x2xf32>) -> tensor<32x1xf32>\n"
      "return %u, %v : tensor<32x1xf32>, tensor<32x1xf32>\n}";
  EXPECT_NE(split_module(head + "(tensor<32x1xf32>, tensor<32x1xf32>) {\n" + stack + R"(
  %i = stablehlo.constant dense<3.0> : tensor<f32>
  %w = "stablehlo.reduce_window"(%s, %i) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>} : (tensor<32x2xf32>, tensor<f32>) -> tensor<32x2xf32>
)" + columns),
            nullptr);
  EXPECT_NE(split_module(head + "tensor<32xf32> {\n" + stack + R"(
  %w = "stablehlo.reduce"(%s, %k) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %k : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<32x2xf32>, tensor<f32>) -> tensor<32xf32>
  return %w : tensor<32xf32>
})"),
            nullptr);
  const auto module = split_module(R"(
func.func @main(%x: tensor<32x1000xf32>, %k: tensor<f32>) -> (tensor<32x1xf32>, tensor<32x1xf32>) {
  %c = stablehlo.pad %x, %k, low = [0, 1], high = [0, -999], interior = [0, 0] : (tensor<32x1000xf32>, tensor<f32>) -> tensor<32x2xf32>
  %w = stablehlo.negate %c : tensor<32x2xf32>
)" + columns);
  EXPECT_TRUE(module == nullptr || ops_of(*module, OpCode::kSlice) < 10);
}

// A loop whose state is stacked and taken apart in each turn, and which collects the states: it
// carries parts, the state is stacked behind it.
TEST(SplitStacks, StatesOfLoops) {
  const auto module = split_module(R"(
func.func @main(%a: tensor<16x2xf32>) -> (tensor<16x2xf32>, tensor<6x16x2xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<6x16x2xf32>
  %w:3 = stablehlo.while(%i = %zero, %s = %a, %all = %z) : tensor<i32>, tensor<16x2xf32>, tensor<6x16x2xf32>
  cond {
    %n = stablehlo.constant dense<6> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %x = stablehlo.slice %s [0:16, 0:1] : (tensor<16x2xf32>) -> tensor<16x1xf32>
    %y = stablehlo.slice %s [0:16, 1:2] : (tensor<16x2xf32>) -> tensor<16x1xf32>
    %u = stablehlo.subtract %y, %x : tensor<16x1xf32>
    %v = stablehlo.add %x, %y : tensor<16x1xf32>
    %d = stablehlo.concatenate %u, %v, dim = 1 : (tensor<16x1xf32>, tensor<16x1xf32>) -> tensor<16x2xf32>
    %t = stablehlo.add %s, %d : tensor<16x2xf32>
    %r = stablehlo.reshape %t : (tensor<16x2xf32>) -> tensor<1x16x2xf32>
    %new = stablehlo.dynamic_update_slice %all, %r, %i, %zero, %zero : (tensor<6x16x2xf32>, tensor<1x16x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x16x2xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %new : tensor<i32>, tensor<16x2xf32>, tensor<6x16x2xf32>
  }
  return %w#1, %w#2 : tensor<16x2xf32>, tensor<6x16x2xf32>
})");
  ASSERT_NE(module, nullptr);
  for (const Instruction& op : *module->entry()) {
    if (op.code() != OpCode::kWhile) continue;
    EXPECT_EQ(op.operand_count(), 5U) << "the counter, two states, two arrays of them";
    EXPECT_FALSE(any_instruction(op.region(1), [](const Instruction& inner) {
      return inner.code() == OpCode::kConcatenate;
    }));
  }
}

TEST(SplitStacks, LeavesOthersAlone) {
  // As much is taken apart afterwards: columns of arguments, and a stack that is a result.
  EXPECT_EQ(split_module(R"(func.func @main(%a: tensor<64x2xf32>) -> tensor<64x2xf32> {
  %x = stablehlo.slice %a [0:64, 0:1] : (tensor<64x2xf32>) -> tensor<64x1xf32>
  %y = stablehlo.slice %a [0:64, 1:2] : (tensor<64x2xf32>) -> tensor<64x1xf32>
  %s = stablehlo.concatenate %y, %x, dim = 1 : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x2xf32>
  return %s : tensor<64x2xf32>
})"),
            nullptr);
  // Places beside the elements of an argument are no array that is stacked.
  EXPECT_EQ(split_module(R"(func.func @main(%a: tensor<64x3xi32>) -> tensor<64xi32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %i = stablehlo.iota dim = 1 : tensor<64x3xi32>
  %r:2 = stablehlo.reduce(%a init: %z), (%i init: %z) across dimensions = [1] : (tensor<64x3xi32>, tensor<64x3xi32>, tensor<i32>, tensor<i32>) -> (tensor<64xi32>, tensor<64xi32>)
   reducer(%x: tensor<i32>, %y: tensor<i32>) (%u: tensor<i32>, %v: tensor<i32>) {
    %g = stablehlo.compare GE, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %m = stablehlo.select %g, %x, %y : tensor<i1>, tensor<i32>
    %k = stablehlo.select %g, %u, %v : tensor<i1>, tensor<i32>
    stablehlo.return %m, %k : tensor<i32>, tensor<i32>
  }
  return %r#1 : tensor<64xi32>
})"),
            nullptr);
  // Rows of more elements.
  EXPECT_EQ(split_module(
                R"(func.func @main(%a: tensor<64x9xf32>, %b: tensor<64x1xf32>) -> tensor<64x1xf32> {
  %s = stablehlo.concatenate %a, %b, dim = 1 : (tensor<64x9xf32>, tensor<64x1xf32>) -> tensor<64x10xf32>
  %t = stablehlo.add %s, %s : tensor<64x10xf32>
  %x = stablehlo.slice %t [0:64, 9:10] : (tensor<64x10xf32>) -> tensor<64x1xf32>
  return %x : tensor<64x1xf32>
})"),
            nullptr);
}

}  // namespace
}  // namespace tenon::hlo
