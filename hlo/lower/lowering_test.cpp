// Programs that lowering once got wrong; compares interp with the evaluator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hlo/driver/compile.h"
#include "hlo/driver/same_test_util.h"
#include "hlo/lower/lower.h"
#include "hlo/passes/pass.h"

namespace tenon::conformance {
namespace {

// A loop of three iterations with the body `body`, from %a to %b.
std::string loop(const std::string& body, const std::string& type = "tensor<f32>",
                 const std::string& more = "%one = stablehlo.constant dense<true> : tensor<i1>") {
  return "func.func @main(%x: " + type + ") -> " + type +
         " {\n%zero = stablehlo.constant dense<0> : tensor<i32>\n"
         "%r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, " +
         type + "\ncond {\n" + more +
         "\n%n = stablehlo.constant dense<3> : tensor<i32>\n"
         "%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
         "stablehlo.return %p : tensor<i1>\n} do {\n" +
         body +
         "\n%step = stablehlo.constant dense<1> : tensor<i32>\n"
         "%j = stablehlo.add %i, %step : tensor<i32>\n"
         "stablehlo.return %j, %b : tensor<i32>, " +
         type + "\n}\nreturn %r#1 : " + type + "\n}";
}

std::string lowering_error(const std::string& text) {
  const auto module = hlo::import_module(text, "t");
  if (!module) return module.error().to_string();
  const auto program = hlo::compile_to_program(**module);
  return program ? "" : program.error().to_string();
}

TEST(Lowering, UnknownSizesAreRefused) {
  EXPECT_EQ(lowering_error(R"(
func.func @main(%a: tensor<3xf32>) -> tensor<?xf32> {
  %0 = "stablehlo.cosine"(%a) : (tensor<3xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
})"),
            "t:3:8: error: stablehlo.cosine: f32[?] has dimensions that are not known");
}

// Kernels have at most 64 dimensions, one of which complex numbers need.
TEST(Lowering, TooManyDimensionsAreRefused) {
  const auto text = [](int rank, const char* element) {
    std::string type = "tensor<";
    for (int i = 0; i < rank; ++i) type += "1x";
    type += std::string(element) + ">";
    return fmt::format(
        "func.func @main(%x: tensor<{0}>) -> tensor<{0}> {{\n%a = stablehlo.reshape %x : "
        "(tensor<{0}>) -> {1}\n%b = stablehlo.negate %a : {1}\n%c = stablehlo.reshape %b : ({1}) "
        "-> tensor<{0}>\nreturn %c : tensor<{0}>\n}}",
        element, type);
  };
  EXPECT_EQ(lowering_error(text(64, "f32")), "");
  EXPECT_EQ(lowering_error(text(65, "f32")),
            "t:2:6: error: stablehlo.reshape: an array of 65 dimensions, of which kernels have at "
            "most 64");
  EXPECT_EQ(lowering_error(text(63, "complex<f32>")), "");
  EXPECT_EQ(lowering_error(text(64, "complex<f32>")),
            "t:2:6: error: stablehlo.reshape: an array of 65 dimensions, of which kernels have at "
            "most 64");
}

TEST(Lowering, EmptyArraysInsideControlFlow) {
  const std::vector<Literal> four = {Literal::scalar(ElementType::kF32, 4)};
  expect_same(
      loop("%e = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<0xf32>\n"
           "%c = stablehlo.concatenate %e, %e, dim = 0 : (tensor<0xf32>, tensor<0xf32>) -> "
           "tensor<0xf32>\n"
           "%b = stablehlo.reduce(%c init: %a) applies stablehlo.add across dimensions = [0] "
           ": (tensor<0xf32>, tensor<f32>) -> tensor<f32>"),
      four);
  expect_same(
      loop("%e = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> "
           "tensor<0x5xf32>\n"
           "%c = stablehlo.reshape %e : (tensor<0x5xf32>) -> tensor<0xf32>\n"
           "%b = stablehlo.reduce(%c init: %a) applies stablehlo.add across dimensions = [0] "
           ": (tensor<0xf32>, tensor<f32>) -> tensor<f32>"),
      four);
}

// Each product inside the sum of the next would be computed again for each of the sum's elements.
TEST(Lowering, ChainsOfProductsInsideALoop) {
  std::string body =
      "%d0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> "
      "tensor<4x4xf32>\n";
  for (int i = 1; i <= 12; ++i) {
    body += fmt::format(
        "%d{} = stablehlo.dot_general %d{}, %d{}, contracting_dims = [1] x [0] : "
        "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n",
        i, i - 1, i - 1);
  }
  body +=
      "%b = stablehlo.reduce(%d12 init: %a) applies stablehlo.maximum across dimensions = [0, 1] "
      ": (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>";
  expect_same(loop(body), {Literal::scalar(ElementType::kF32, 0.2)});
}

TEST(Lowering, ControlFlowInTheConditionOfALoopOverArrays) {
  Literal x(Shape(ElementType::kF32, {4, 4}));
  for (int64_t i = 0; i < 16; ++i) x.set_double(i, static_cast<double>(i));
  expect_same(
      loop(
          "%b = stablehlo.add %a, %a : tensor<4x4xf32>", "tensor<4x4xf32>",
          "%t = stablehlo.constant dense<true> : tensor<i1>\n"
          "%u = \"stablehlo.if\"(%t) ({\nstablehlo.return %a : tensor<4x4xf32>\n}, {\n"
          "%v = stablehlo.negate %a : tensor<4x4xf32>\nstablehlo.return %v : tensor<4x4xf32>\n}) : "
          "(tensor<i1>) -> tensor<4x4xf32>"),
      {x});
}

TEST(Lowering, NumbersWithoutASign) {
  const char* text = R"(func.func @main() -> (tensor<6xi1>, tensor<6xf8E8M0FNU>) {
  %x = stablehlo.constant dense<[0.25, 0.5, 1.0, 2.0, 4.0, 64.0]> : tensor<6xf32>
  %c = stablehlo.convert %x : (tensor<6xf32>) -> tensor<6xf8E8M0FNU>
  %d = stablehlo.reverse %c, dims = [0] : tensor<6xf8E8M0FNU>
  %l = stablehlo.compare LT, %c, %d, TOTALORDER : (tensor<6xf8E8M0FNU>, tensor<6xf8E8M0FNU>) -> tensor<6xi1>
  %r = stablehlo.reduce_precision %c, format = e3m0 : tensor<6xf8E8M0FNU>
  return %l, %r : tensor<6xi1>, tensor<6xf8E8M0FNU>
})";
  expect_same(text, {});
  const auto module = hlo::import_module(text, "t");
  const auto results = hlo::Evaluator(**module).run(*(*module)->entry(), std::vector<Literal>{});
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0].to_string(), "[true, true, true, false, false, false]");
}

// LT does not order NaNs: the result is unspecified, but the same for any order of iterations.
TEST(Lowering, SortsByAComparatorThatIsNoOrder) {
  const auto module = hlo::import_module(
      R"(func.func @main(%x: tensor<37xf32>) -> tensor<37xf32> {
  %y = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<37xf32>) -> tensor<37xf32>
  return %y : tensor<37xf32>
})",
      "t");
  ASSERT_TRUE(module) << module.error().to_string();
  Literal x(Shape(ElementType::kF32, {37}));
  for (int64_t i = 0; i < 37; ++i) {
    x.set_double(i, i % 5 == 2 ? std::nan("") : static_cast<double>(i * 23 % 37));
  }
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  std::vector<Literal> first;
  for (const int64_t row_scratch : {0, 1}) {
    for (const uint64_t seed : {0U, 1U, 2U}) {
      hlo::InterpretedRunOptions options;
      options.lower.tuning.set("row_scratch", row_scratch);
      if (seed != 0) options.interpreter.order = kernel::Order::kShuffled;
      options.interpreter.seed = seed;
      auto results = hlo::run_interpreted(**module, std::span(&x, 1),
                                          hlo::Checks(&failures, &checks), options);
      ASSERT_TRUE(results) << results.error().to_string();
      if (first.empty()) first = *results;
      EXPECT_EQ(results->front(), first.front());
    }
  }
}

// The nesting depth of ifs in a kernel is limited.
TEST(Lowering, ConcatenationsOfHundreds) {
  std::string ops;
  std::string names;
  std::string types;
  for (int i = 0; i < 300; ++i) {
    ops += fmt::format("%a{} = stablehlo.add %{}, %x : tensor<2xf32>\n", i,
                       i == 0 ? "x" : fmt::format("a{}", i - 1));
    names += fmt::format("{}%a{}", i == 0 ? "" : ", ", i);
    types += fmt::format("{}tensor<2xf32>", i == 0 ? "" : ", ");
  }
  const Literal x = Literal::scalar(ElementType::kF32, 1).splat_to(Shape(ElementType::kF32, {2}));
  expect_same("func.func @main(%x: tensor<2xf32>) -> tensor<600xf32> {\n" + ops +
                  "%r = stablehlo.concatenate " + names + ", dim = 0 : (" + types +
                  ") -> tensor<600xf32>\nreturn %r : tensor<600xf32>\n}",
              {x});
}

TEST(Lowering, CasesOfHundreds) {
  for (const std::string type : {"tensor<f32>", "tensor<4xf32>", "tensor<2000xf32>"}) {
    std::string text = fmt::format(
        "func.func @main(%i: tensor<i32>, %x: {0}) -> {0} {{\n%r = \"stablehlo.case\"(%i) ({{\n",
        type);
    for (int i = 0; i < 250; ++i) {
      text += fmt::format(
          "{0}%c{1} = stablehlo.constant dense<{1}.0> : {2}\n"
          "%a{1} = stablehlo.add %x, %c{1} : {2}\nstablehlo.return %a{1} : {2}\n",
          i == 0 ? "" : "}, {\n", i, type);
    }
    text += fmt::format("}}) : (tensor<i32>) -> {0}\nreturn %r : {0}\n}}", type);
    const auto module = hlo::import_module(text, "t");
    ASSERT_TRUE(module) << module.error().to_string();
    const Literal x = Literal::scalar(ElementType::kF32, 1)
                          .splat_to((*module)->entry()->parameter(1).type().shape());
    for (const int64_t index : {-1L, 0L, 1L, 124L, 125L, 249L, 250L, 0x7FFFFFFFL}) {
      SCOPED_TRACE(fmt::format("{} {}", type, index));
      expect_same(text, {Literal::scalar_integer(ElementType::kS32, index), x});
    }
  }
}

// Elements are emitted recursively, with a limited depth.
TEST(Lowering, ThousandsOfOpsInARow) {
  std::string body;
  for (int i = 0; i < 1500; ++i) {
    body += fmt::format("%t{} = stablehlo.add %{}, %x : tensor<f32>\n", i,
                        i == 0 ? "a" : fmt::format("t{}", i - 1));
  }
  body += "%b = stablehlo.multiply %t1499, %x : tensor<f32>";
  expect_same(loop(body), {Literal::scalar(ElementType::kF32, 0.5)});
  std::string region;
  for (int i = 0; i < 1500; ++i) {
    region += fmt::format("%t{} = stablehlo.add %{}, %b : tensor<f32>\n", i,
                          i == 0 ? "a" : fmt::format("t{}", i - 1));
  }
  const Literal x = Literal::scalar(ElementType::kF32, 1).splat_to(Shape(ElementType::kF32, {8}));
  expect_same(
      "func.func @main(%v: tensor<8xf32>, %z: tensor<f32>) -> tensor<f32> {\n"
      "%r = \"stablehlo.reduce\"(%v, %z) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n" +
          region +
          "stablehlo.return %t1499 : tensor<f32>\n}) {dimensions = array<i64: 0>} : "
          "(tensor<8xf32>, tensor<f32>) -> tensor<f32>\nreturn %r : tensor<f32>\n}",
      {x, Literal::scalar(ElementType::kF32, 0)});
}

// Each op reads the previous one at two indices: one kernel would contain it 2^12 times.
TEST(Lowering, LoopsThatOneKernelCannotHold) {
  std::string body =
      "%h = stablehlo.constant dense<0.5> : tensor<4xf32>\n"
      "%k = stablehlo.iota dim = 0 : tensor<4xf32>\n"
      "%w = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<4xf32>\n"
      "%v0 = stablehlo.add %w, %k : tensor<4xf32>\n";
  for (int i = 0; i < 12; ++i) {
    body += fmt::format(
        "%s{0} = stablehlo.slice %v{0} [1:4] : (tensor<4xf32>) -> tensor<3xf32>\n"
        "%q{0} = stablehlo.slice %v{0} [0:1] : (tensor<4xf32>) -> tensor<1xf32>\n"
        "%y{0} = stablehlo.concatenate %s{0}, %q{0}, dim = 0 : (tensor<3xf32>, tensor<1xf32>) -> "
        "tensor<4xf32>\n%u{0} = stablehlo.multiply %y{0}, %h : tensor<4xf32>\n"
        "%v{1} = stablehlo.maximum %v{0}, %u{0} : tensor<4xf32>\n",
        i, i + 1);
  }
  body +=
      "%e = stablehlo.slice %v12 [2:3] : (tensor<4xf32>) -> tensor<1xf32>\n"
      "%b = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>";
  expect_same(loop(body), {Literal::scalar(ElementType::kF32, 1)});
}

TEST(Lowering, BitsOfSixBitFloats) {
  for (const std::string type : {"f6E2M3FN", "f6E3M2FN"}) {
    SCOPED_TRACE(type);
    std::string reduced;
    std::string values;
    std::string types;
    int count = 0;
    for (int exponent = 1; exponent <= 8; ++exponent) {
      for (int mantissa = 0; mantissa <= 3; ++mantissa, ++count) {
        reduced += fmt::format(
            "%r{0} = stablehlo.reduce_precision %x, format = e{1}m{2} : tensor<64x{3}>\n", count,
            exponent, mantissa, type);
        values += fmt::format(", %r{}", count);
        types += fmt::format(", tensor<64x{}>", type);
      }
    }
    const std::string text = fmt::format(
        "func.func @main(%b: tensor<64x3xui2>) -> (tensor<64x3xui2>, tensor<64x{0}>{1}) {{\n"
        "%x = stablehlo.bitcast_convert %b : (tensor<64x3xui2>) -> tensor<64x{0}>\n"
        "%c = stablehlo.bitcast_convert %x : (tensor<64x{0}>) -> tensor<64x3xui2>\n{2}"
        "return %c, %x{3} : tensor<64x3xui2>, tensor<64x{0}>{1}\n}}",
        type, types, reduced, values);
    Literal bits(Shape(ElementType::kU2, {64, 3}));
    for (int64_t i = 0; i < 64; ++i) {
      for (int64_t k = 0; k < 3; ++k) bits.set_integer(3 * i + k, i >> (2 * k) & 3);
    }
    expect_same(text, {bits});
  }
}

TEST(Lowering, AnotherEntry) {
  const auto module = hlo::import_module(R"(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = func.call @other(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
func.func private @other(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = func.call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = stablehlo.add %x, %x : tensor<2xf32>
  return %y : tensor<2xf32>
})",
                                         "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const Literal x = Literal::scalar(ElementType::kF32, 3).splat_to(Shape(ElementType::kF32, {2}));
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  hlo::InterpretedRunOptions options;
  options.lower.entry = "other";
  const auto results =
      hlo::run_interpreted(**module, std::span(&x, 1), hlo::Checks(&failures, &checks), options);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ(results->front().to_string(), "[6, 6]");
  options.lower.entry = "nobody";
  EXPECT_FALSE(
      hlo::run_interpreted(**module, std::span(&x, 1), hlo::Checks(&failures, &checks), options));
}

// A number computed from an index is data, which no memory bounds.
TEST(Lowering, IndicesBeyond32BitsAsNumbers) {
  const auto module = hlo::import_module(R"(
func.func @main() -> tensor<i1> {
  %i = stablehlo.iota dim = 0 : tensor<2147483677xi64>
  %c = stablehlo.constant dense<2147483670> : tensor<i64>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<2147483677xi64>
  %x = stablehlo.compare EQ, %i, %b : (tensor<2147483677xi64>, tensor<2147483677xi64>) -> tensor<2147483677xi1>
  %z = stablehlo.constant dense<false> : tensor<i1>
  %m = stablehlo.reduce(%x init: %z) applies stablehlo.or across dimensions = [0] : (tensor<2147483677xi1>, tensor<i1>) -> tensor<i1>
  return %m : tensor<i1>
})",
                                         "t");
  ASSERT_TRUE(module) << module.error().to_string();
  for (const std::string_view pass : {"fusion"}) {
    ASSERT_TRUE(hlo::run_passes(**module, std::span(&pass, 1)).ok());
  }
  const auto program = hlo::compile_to_program(**module, {});
  ASSERT_TRUE(program) << program.error().to_string();
  ASSERT_FALSE(program->kernels.empty());
  EXPECT_EQ(program->kernels.front().index_type, ElementType::kS64);
}

// The body carries the random state: the condition's numbers are drawn in the body, and before the
// loop.
TEST(Lowering, ConditionsThatDraw) {
  expect_same(R"(func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %dims = stablehlo.constant dense<> : tensor<0xi64>
  %r = stablehlo.while(%a = %x) : tensor<f32>
  cond {
    %u = stablehlo.rng %low, %high, %dims, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
    %most = stablehlo.constant dense<0.9> : tensor<f32>
    %p = stablehlo.compare LT, %u, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %u = stablehlo.rng %low, %high, %dims, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
    %b = stablehlo.add %a, %u : tensor<f32>
    stablehlo.return %b : tensor<f32>
  }
  %after = stablehlo.rng %low, %high, %dims, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
  return %r, %after : tensor<f32>, tensor<f32>
})",
              {Literal::scalar(ElementType::kF32, 0)});
}

// All kinds of readers of a splat array: library calls, the host, barriers, sorts, loops.
TEST(Lowering, AnArrayOfOneNumberIsNotKept) {
  const std::string_view many = "tensor<20x30xf32>";
  for (const std::string_view body : {
           "%s = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0] : "
           "(tensor<20x20xf32>, tensor<20x30xf32>) -> tensor<20x30xf32>",
           "%b = stablehlo.optimization_barrier %c : tensor<20x30xf32>\n"
           "%s = stablehlo.add %b, %b : tensor<20x30xf32>",
           R"(%s = "stablehlo.collective_broadcast"(%c) {replica_groups = dense<0> :
                  tensor<1x1xi64>} : (tensor<20x30xf32>) -> tensor<20x30xf32>)",
           R"(%s = "stablehlo.sort"(%c) ({
              ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
                stablehlo.return %l : tensor<i1>
              }) {dimension = 1 : i64} : (tensor<20x30xf32>) -> tensor<20x30xf32>)",
           R"(%t = stablehlo.constant dense<2.0> : tensor<20x30xf32>
              %n = stablehlo.constant dense<0> : tensor<i32>
              %r:2 = stablehlo.while(%i = %n, %s = %t) : tensor<i32>, tensor<20x30xf32> cond {
                %m = stablehlo.constant dense<3> : tensor<i32>
                %p = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
                stablehlo.return %p : tensor<i1>
              } do {
                %o = stablehlo.constant dense<1> : tensor<i32>
                %j = stablehlo.add %i, %o : tensor<i32>
                stablehlo.return %j, %c : tensor<i32>, tensor<20x30xf32>
              }
              %s = stablehlo.add %r#1, %r#1 : tensor<20x30xf32>)",
       }) {
    const std::string text = fmt::format(
        "func.func @main(%x: tensor<20x20xf32>) -> {0} {{\n%c = stablehlo.constant dense<3.0> : "
        "{0}\n{1}\nreturn %s : {0}\n}}",
        many, body);
    SCOPED_TRACE(text);
    expect_same(
        text,
        {Literal::scalar(ElementType::kF32, 0.5).splat_to(Shape(ElementType::kF32, {20, 20}))});
    const auto module = hlo::import_module(text, "t");
    ASSERT_TRUE(module) << module.error().to_string();
    for (const bool calls : {false, true}) {
      hlo::LowerOptions options;
      if (calls) options.takes_call = [](const auto&...) { return true; };
      const auto lowered = hlo::compile_to_program(**module, options);
      ASSERT_TRUE(lowered) << lowered.error().to_string();
      for (const Literal& kept : lowered->constants) EXPECT_LT(kept.element_count(), 256);
    }
  }
}

// A body may compute in wider types than those of the elements that it combines.
TEST(Lowering, ScattersThatPromote) {
  const auto text = [](std::string_view input, std::string_view update, std::string_view body) {
    return fmt::format(R"(func.func @main(%x: tensor<3x{0}>, %u: tensor<3x{1}>) -> tensor<3x{2}> {{
  %i = stablehlo.constant dense<0> : tensor<3x1xi32>
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%a: tensor<{2}>, %b: tensor<{2}>):
    %s = stablehlo.add %a, %b : tensor<{2}>
    stablehlo.return %s : tensor<{2}>
  }}) : (tensor<3x{0}>, tensor<3x1xi32>, tensor<3x{1}>) -> tensor<3x{2}>
  return %r : tensor<3x{2}>
}})",
                       input, update, body);
  };
  const auto three = [](ElementType type, double value) {
    return Literal::scalar(type, value).splat_to(Shape(type, {3}));
  };
  const std::vector<Literal> bytes = {three(ElementType::kS8, 100), three(ElementType::kS8, 100)};
  expect_same(text("i8", "i8", "i32"), bytes);
  const auto module = hlo::import_module(text("i8", "i8", "i32"), "t");
  const auto results = hlo::Evaluator(**module).run(*(*module)->entry(), bytes);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0].to_string(), "[400, 100, 100]");
  expect_same(text("bf16", "bf16", "f32"),
              {three(ElementType::kBF16, 1), three(ElementType::kBF16, 0.001)});
  expect_same(text("f32", "bf16", "f32"),
              {three(ElementType::kF32, 1.001), three(ElementType::kBF16, 0.001)});
  const auto narrower = hlo::import_module(text("bf16", "f32", "bf16"), "t");
  ASSERT_FALSE(narrower);
  EXPECT_NE(narrower.error().message().find("C6"), std::string::npos);
}

// In each part a sum or a product of complex numbers is that of the same numbers: it may go in any
// order, in vectors.
TEST(Lowering, ComplexSumsAndProductsInAnyOrder) {
  for (const std::string op : {"add", "multiply"}) {
    const auto module = hlo::import_module(
        "func.func @main(%x: tensor<100xcomplex<f32>>) -> tensor<complex<f32>> {\n"
        "%i = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f32>>\n"
        "%r = stablehlo.reduce(%x init: %i) applies stablehlo." +
            op +
            " across dimensions = [0] : (tensor<100xcomplex<f32>>, tensor<complex<f32>>) -> "
            "tensor<complex<f32>>\nreturn %r : tensor<complex<f32>>\n}",
        "t");
    ASSERT_TRUE(module) << module.error().to_string();
    const auto program = hlo::compile_to_program(**module);
    ASSERT_TRUE(program) << program.error().to_string();
    ASSERT_EQ(program->kernels.size(), 1U);
    const auto& nodes = program->kernels[0].nodes;
    EXPECT_EQ(std::ranges::count_if(nodes, [](const auto& n) { return n.commutative; }), 1);
  }
}

// Large products of complex numbers are those of real ones; in whole numbers no bit differs.
TEST(Lowering, LargeComplexProducts) {
  const auto whole = [](const Dims& dims, int64_t factor) {
    Literal x(Shape(ElementType::kC64, dims));
    for (int64_t i = 0; i < x.element_count(); ++i) {
      x.set_complex(i, {static_cast<double>(i * factor % 7 - 3), static_cast<double>(i % 5 - 2)});
    }
    return x;
  };
  const auto expect_real = [&](const std::string& text, const std::vector<Literal>& arguments) {
    expect_same(text, arguments);
    const auto module = hlo::import_module(text, "t");
    ASSERT_TRUE(module) << module.error().to_string();
    const std::string_view pass = "decompose";
    ASSERT_TRUE(hlo::run_passes(**module, std::span(&pass, 1)).ok());
    const auto& entry = *(*module)->entry();
    EXPECT_TRUE(std::ranges::any_of(entry, [](const hlo::Instruction& op) {
      const bool product =
          op.code() == hlo::OpCode::kDotGeneral || op.code() == hlo::OpCode::kConvolution;
      return product && op.result_type().element_type() == ElementType::kF32;
    }));
  };
  expect_real(R"(
func.func @main(%x: tensor<5x2x16x8xcomplex<f32>>, %y: tensor<3x16x2x40xcomplex<f32>>) -> tensor<2x5x8x3x40xcomplex<f32>> {
  %d = stablehlo.dot_general %x, %y, batching_dims = [1] x [2], contracting_dims = [2] x [1] : (tensor<5x2x16x8xcomplex<f32>>, tensor<3x16x2x40xcomplex<f32>>) -> tensor<2x5x8x3x40xcomplex<f32>>
  return %d : tensor<2x5x8x3x40xcomplex<f32>>
})",
              {whole({5, 2, 16, 8}, 3), whole({3, 16, 2, 40}, 4)});
  expect_real(R"(
func.func @main(%x: tensor<2x8x30xcomplex<f32>>, %y: tensor<160x3x8xcomplex<f32>>) -> tensor<160x28x2xcomplex<f32>> {
  %d = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[o, 0, i]->[f, 0, b], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x30xcomplex<f32>>, tensor<160x3x8xcomplex<f32>>) -> tensor<160x28x2xcomplex<f32>>
  return %d : tensor<160x28x2xcomplex<f32>>
})",
              {whole({2, 8, 30}, 3), whole({160, 3, 8}, 4)});
}

// A body may take elements of another float type than its accumulator's: they are converted to it.
TEST(Lowering, BodiesThatTakeElementsOfAnotherType) {
  const auto body = [](std::string_view element) {
    return fmt::format(R"(({{
  ^bb0(%a: tensor<f32>, %b: tensor<{0}>):
    %one = stablehlo.constant dense<1.0> : tensor<{0}>
    %m = stablehlo.add %b, %one : tensor<{0}>
    %c = stablehlo.convert %m : (tensor<{0}>) -> tensor<f32>
    %s = stablehlo.add %a, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}))",
                       element);
  };
  Literal x(Shape(ElementType::kF32, {4}));
  for (int64_t i = 0; i < 4; ++i) x.set_double(i, 0.3 * static_cast<double>(i));
  const std::vector<Literal> arguments = {x, Literal::scalar(ElementType::kF32, 2)};
  for (const std::string element : {"f16", "f8E4M3FN", "f64"}) {
    SCOPED_TRACE(element);
    const auto text = [&](std::string_view op, std::string_view operands,
                          std::string_view attributes, std::string_view types,
                          std::string_view result) {
      return fmt::format(R"(func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> {4} {{
  %i = stablehlo.constant dense<[[1], [3], [1], [0]]> : tensor<4x1xi32>
  %r = "stablehlo.{0}"({1}) <{{{2}}}> {5} : ({3}) -> {4}
  return %r : {4}
}})",
                         op, operands, attributes, types, result, body(element));
    };
    expect_same(text("reduce", "%x, %z", "dimensions = array<i64: 0>", "tensor<4xf32>, tensor<f32>",
                     "tensor<f32>"),
                arguments);
    expect_same(text("reduce_window", "%x, %z", "window_dimensions = array<i64: 2>",
                     "tensor<4xf32>, tensor<f32>", "tensor<3xf32>"),
                arguments);
    expect_same(text("scatter", "%x, %i, %x",
                     "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
                     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
                     "tensor<4xf32>, tensor<4x1xi32>, tensor<4xf32>", "tensor<4xf32>"),
                arguments);
  }
  // Lanes and workgroups would combine what they have accumulated.
  Literal many(Shape(ElementType::kF32, {10'000}));
  for (int64_t i = 0; i < many.element_count(); ++i) {
    many.set_double(i, static_cast<double>(i % 7));
  }
  expect_same(
      fmt::format(R"(func.func @main(%x: tensor<10000xf32>, %z: tensor<f32>) -> tensor<f32> {{
  %r = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 0>}}> {} : (tensor<10000xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}})",
                  body("f8E4M3FN")),
      {many, arguments[1]});
  expect_same(fmt::format(R"(func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<4xf32> {{
  %s = stablehlo.slice %x [1:2] : (tensor<4xf32>) -> tensor<1xf32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{{window_dimensions = array<i64: 4>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %g = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }}, {} : (tensor<4xf32>, tensor<1xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}})",
                          body("f16").substr(1)),
              arguments);
}

// Each element tests the windows that can contain it: strides beyond the window, windows that end
// or lie in the padding, and a single one.
TEST(Lowering, WindowsThatMeet) {
  Random random(2);
  Literal x(Shape(ElementType::kF32, {13}));
  for (int64_t i = 0; i < 13; ++i) x.set_double(i, static_cast<double>(random.below(5)));
  struct Geometry {
    int64_t window, stride, low, high;
  };
  for (const auto& [window, stride, low, high] : {Geometry{3, 2, 1, 1},
                                                  {2, 5, 0, 0},
                                                  {4, 1, 3, 0},
                                                  {5, 2, 4, 6},
                                                  {13, 1, 0, 0},
                                                  {20, 9, 3, 4},
                                                  {3, 4, 5, 9},
                                                  {1, 3, 0, 0},
                                                  {6, 3, -2, -1}}) {
    const int64_t results = (13 + low + high - window) / stride + 1;
    SCOPED_TRACE(fmt::format("{} {} {} {}", window, stride, low, high));
    Literal g(Shape(ElementType::kF32, {results}));
    for (int64_t i = 0; i < results; ++i) g.set_double(i, static_cast<double>(i + 1));
    expect_same(
        fmt::format(R"(func.func @main(%x: tensor<13xf32>, %g: tensor<{0}xf32>) -> tensor<13xf32> {{
  %z = stablehlo.constant dense<0.5> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %g, %z) <{{window_dimensions = array<i64: {1}>,
      window_strides = array<i64: {2}>, padding = dense<[[{3}, {4}]]> : tensor<1x2xi64>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %c = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}, {{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) : (tensor<13xf32>, tensor<{0}xf32>, tensor<f32>) -> tensor<13xf32>
  return %r : tensor<13xf32>
}})",
                    results, window, stride, low, high),
        {x, g});
  }
}

// Their bits are those of the generator; a number of such a type has no sign at 0.
TEST(Lowering, RareFloatTypes) {
  Literal state(Shape(ElementType::kU64, {2}));
  state.set_integer(0, 7);
  for (const std::string type : {"f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU", "f8E4M3FNUZ"}) {
    SCOPED_TRACE(type);
    expect_same(fmt::format(R"(func.func @main(%s: tensor<2xui64>) -> tensor<9x{0}> {{
  %n, %r = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<9x{0}>)
  return %r : tensor<9x{0}>
}})",
                            type),
                {state});
  }
  expect_same(R"(func.func @main(%x: tensor<2xf8E8M0FNU>) -> tensor<2xf8E8M0FNU> {
  %i = stablehlo.imag %x : tensor<2xf8E8M0FNU>
  %r = stablehlo.ceil %i : tensor<2xf8E8M0FNU>
  return %r : tensor<2xf8E8M0FNU>
})",
              {Literal(Shape(ElementType::kF8E8M0FNU, {2}))});
  Literal bits(Shape(ElementType::kU8, {256}));
  for (int64_t i = 0; i < 256; ++i) bits.set_integer(i, i);
  for (const std::string type : {"f8E4M3B11FNUZ", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3FN"}) {
    for (const char* format : {"e1m0", "e1m7", "e2m2", "e3m1"}) {
      SCOPED_TRACE(type + format);
      expect_same(fmt::format(R"(func.func @main(%b: tensor<256xui8>) -> tensor<256x{0}> {{
  %x = stablehlo.bitcast_convert %b : (tensor<256xui8>) -> tensor<256x{0}>
  %r = stablehlo.reduce_precision %x, format = {1} : tensor<256x{0}>
  return %r : tensor<256x{0}>
}})",
                              type, format),
                  {bits});
    }
  }
}

}  // namespace
}  // namespace tenon::conformance
