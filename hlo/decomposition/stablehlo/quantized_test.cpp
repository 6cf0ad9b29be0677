// Quantized types on interp and on the evaluator: regions compute on quantized values as written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hlo/driver/same_test_util.h"

namespace tenon::conformance {
namespace {

// Checks that both devices return the bytes `expected`, one result each.
void expect_results(const std::string& text, const std::vector<Literal>& arguments,
                    const std::vector<std::string>& expected) {
  SCOPED_TRACE(text);
  expect_same(text, arguments);
  const auto module = hlo::import_module(text, "t");
  ASSERT_TRUE(module);
  const auto results = hlo::Evaluator(**module).run(*(*module)->entry(), arguments);
  ASSERT_TRUE(results) << results.error().to_string();
  ASSERT_EQ(results->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ((*results)[i].to_string(), expected[i]);
}

Literal integers(ElementType type, Dims dims, const std::vector<int64_t>& values) {
  Literal literal(Shape(type, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) {
    literal.set_integer(static_cast<int64_t>(i), values[i]);
  }
  return literal;
}
Literal bytes(Dims dims, const std::vector<int64_t>& values) {
  return integers(ElementType::kS8, std::move(dims), values);
}

// Reduces %x, bytes of `shape`, along its last dimension from `init` by `body`, whose values have
// the type `q`; returns the integers of the result, of storage type `to`.
std::string reduction(const std::string& shape, const std::string& kept, const std::string& q,
                      const std::string& body, int init = 0, const std::string& to = "i8",
                      std::string from = "") {
  if (from.empty()) from = q;
  return fmt::format(R"(func.func @main(%i: tensor<{0}xi8>) -> tensor<{1}{5}> {{
  %x = stablehlo.bitcast_convert %i : (tensor<{0}xi8>) -> tensor<{0}x!quant.uniform<{6}>>
  %z = stablehlo.constant() <{{value = dense<{4}> : tensor<{5}>}}> : () -> tensor<!quant.uniform<{2}>>
  %r = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 1>}}> ({{
  ^bb0(%a: tensor<!quant.uniform<{2}>>, %b: tensor<!quant.uniform<{2}>>):
    {3}
    stablehlo.return %s : tensor<!quant.uniform<{2}>>
  }}) : (tensor<{0}x!quant.uniform<{6}>>, tensor<!quant.uniform<{2}>>) -> tensor<{1}!quant.uniform<{2}>>
  %o = stablehlo.bitcast_convert %r : (tensor<{1}!quant.uniform<{2}>>) -> tensor<{1}{5}>
  return %o : tensor<{1}{5}>
}})",
                     shape, kept, q, body, init, to, from);
}

const std::string kUnit = "i8:f32, 1.0";
const std::string kAdd = "%s = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 1.0>>";

TEST(QuantizedRegions, EveryStepStaysInItsType) {
  // 0 + 100, + 100 saturates at 127, - 100; -100 - 100 saturates at -128, + 50.
  expect_results(reduction("2x3", "2x", kUnit, kAdd),
                 {bytes({2, 3}, {100, 100, -100, -100, -100, 50})}, {"[27, -78]"});
}

TEST(QuantizedRegions, AQuantizationWithinABodyCounts) {
  // Sums to multiples of 10: 0 + 14 -> 10, 10 + 14 = 24 -> 20, 34 -> 30.
  const std::string body = R"(%w = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 1.0>>
    %c = stablehlo.uniform_quantize %w : (tensor<!quant.uniform<i8:f32, 1.0>>) -> tensor<!quant.uniform<i8:f32, 10.0>>
    %s = stablehlo.uniform_quantize %c : (tensor<!quant.uniform<i8:f32, 10.0>>) -> tensor<!quant.uniform<i8:f32, 1.0>>)";
  expect_results(reduction("1x3", "1x", kUnit, body), {bytes({1, 3}, {14, 14, 14})}, {"[30]"});
}

TEST(QuantizedRegions, ABodyMayGiveAnotherScale) {
  // The sum in steps of 4 is the next operand in steps of 1: 0 + 5 -> 4, 4 + 5 -> 8, 13 -> 12.
  const std::string body =
      "%w = stablehlo.add %a, %b : (tensor<!quant.uniform<i8:f32, 1.0>>, "
      "tensor<!quant.uniform<i8:f32, "
      "1.0>>) -> tensor<!quant.uniform<i8:f32, 4.0>>\n"
      "    %s = stablehlo.uniform_quantize %w : (tensor<!quant.uniform<i8:f32, 4.0>>) -> "
      "tensor<!quant.uniform<i8:f32, 1.0>>";
  expect_results(reduction("1x3", "1x", kUnit, body), {bytes({1, 3}, {5, 5, 5})}, {"[12]"});
}

TEST(QuantizedRegions, OperandsMayHaveAnotherScaleThanTheBody) {
  // 100 + 100 in units of 0.5 is 100; with wider storage sums may exceed a byte.
  expect_results(reduction("1x2", "1x", kUnit, kAdd, 0, "i8", "i8:f32, 0.5"),
                 {bytes({1, 2}, {100, 100})}, {"[100]"});
  expect_results(reduction("1x2", "1x", "i16:f32, 1.0",
                           "%s = stablehlo.add %a, %b : tensor<!quant.uniform<i16:f32, 1.0>>", 7,
                           "i16", "i8:f32, 2.0:-1"),
                 {bytes({1, 2}, {127, 127})}, {"[519]"});
}

TEST(QuantizedRegions, ConstantsAndValuesFromAround) {
  const std::string text = R"(func.func @main(%i: tensor<3xi8>, %j: tensor<i8>) -> tensor<3xi8> {
  %x = stablehlo.bitcast_convert %i : (tensor<3xi8>) -> tensor<3x!quant.uniform<i8:f32, 0.5:1>>
  %k = stablehlo.bitcast_convert %j : (tensor<i8>) -> tensor<!quant.uniform<i8:f32, 0.5:1>>
  %r = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5:1>>):
    %c = stablehlo.constant() <{value = dense<5> : tensor<i8>}> : () -> tensor<!quant.uniform<i8:f32, 0.5:1>>
    %s = stablehlo.add %a, %c : tensor<!quant.uniform<i8:f32, 0.5:1>>
    %t = stablehlo.add %s, %k : tensor<!quant.uniform<i8:f32, 0.5:1>>
    stablehlo.return %t : tensor<!quant.uniform<i8:f32, 0.5:1>>
  }) : (tensor<3x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<3x!quant.uniform<i8:f32, 0.5:1>>
  %o = stablehlo.bitcast_convert %r : (tensor<3x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<3xi8>
  return %o : tensor<3xi8>
})";
  // Values (q - 1) / 2: x + 2 + 4.
  expect_results(text, {bytes({3}, {1, 3, -9}), bytes({}, {9})}, {"[13, 15, 3]"});
}

TEST(QuantizedRegions, SortsKeepWhatFloatsCannotTell) {
  const std::string text =
      R"(func.func @main(%i: tensor<4xi32>, %k: tensor<4xi8>) -> (tensor<4xi32>, tensor<4xi8>) {
  %x = stablehlo.bitcast_convert %i : (tensor<4xi32>) -> tensor<4x!quant.uniform<i32:f32, 1.0>>
  %r:2 = "stablehlo.sort"(%x, %k) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<!quant.uniform<i32:f32, 1.0>>, %b: tensor<!quant.uniform<i32:f32, 1.0>>, %c: tensor<i8>, %d: tensor<i8>):
    %p = stablehlo.compare LT, %a, %b : (tensor<!quant.uniform<i32:f32, 1.0>>, tensor<!quant.uniform<i32:f32, 1.0>>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x!quant.uniform<i32:f32, 1.0>>, tensor<4xi8>) -> (tensor<4x!quant.uniform<i32:f32, 1.0>>, tensor<4xi8>)
  %o = stablehlo.bitcast_convert %r#0 : (tensor<4x!quant.uniform<i32:f32, 1.0>>) -> tensor<4xi32>
  return %o, %r#1 : tensor<4xi32>, tensor<4xi8>
})";
  expect_results(text,
                 {integers(ElementType::kS32, {4}, {16777217, 16777216, 5, -16777217}),
                  bytes({4}, {0, 1, 2, 3})},
                 {"[-16777217, 5, 16777217, 16777216]", "[3, 2, 0, 1]"});
}

TEST(QuantizedRegions, Scatters) {
  const std::string text = R"(func.func @main(%i: tensor<2xi8>, %j: tensor<3xi8>) -> tensor<2xi8> {
  %x = stablehlo.bitcast_convert %i : (tensor<2xi8>) -> tensor<2x!quant.uniform<i8:f32, 1.0>>
  %u = stablehlo.bitcast_convert %j : (tensor<3xi8>) -> tensor<3x!quant.uniform<i8:f32, 2.0>>
  %at = stablehlo.constant dense<[[0], [0], [1]]> : tensor<3x1xi32>
  %r = "stablehlo.scatter"(%x, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<!quant.uniform<i8:f32, 1.0>>, %b: tensor<!quant.uniform<i8:f32, 1.0>>):
    %s = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 1.0>>
    stablehlo.return %s : tensor<!quant.uniform<i8:f32, 1.0>>
  }) : (tensor<2x!quant.uniform<i8:f32, 1.0>>, tensor<3x1xi32>, tensor<3x!quant.uniform<i8:f32, 2.0>>) -> tensor<2x!quant.uniform<i8:f32, 1.0>>
  %o = stablehlo.bitcast_convert %r : (tensor<2x!quant.uniform<i8:f32, 1.0>>) -> tensor<2xi8>
  return %o : tensor<2xi8>
})";
  // 100 + 40 saturates at 127, - 20; 1 + 6.
  expect_results(text, {bytes({2}, {100, 1}), bytes({3}, {20, -10, 3})}, {"[107, 7]"});
}

TEST(QuantizedRegions, WindowsOfSeveralInputs) {
  // A sum of quantized values together with a sum of integers, which quantization does not affect.
  const std::string text =
      R"(func.func @main(%i: tensor<3xi8>, %k: tensor<3xi32>) -> (tensor<2xi8>, tensor<2xi32>) {
  %x = stablehlo.bitcast_convert %i : (tensor<3xi8>) -> tensor<3x!quant.uniform<i8:f32, 1.0>>
  %z = stablehlo.constant() <{value = dense<0> : tensor<i8>}> : () -> tensor<!quant.uniform<i8:f32, 1.0>>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "stablehlo.reduce_window"(%x, %k, %z, %n) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<!quant.uniform<i8:f32, 1.0>>, %c: tensor<i32>, %b: tensor<!quant.uniform<i8:f32, 1.0>>, %d: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<!quant.uniform<i8:f32, 1.0>>
    %t = stablehlo.add %c, %d : tensor<i32>
    stablehlo.return %s, %t : tensor<!quant.uniform<i8:f32, 1.0>>, tensor<i32>
  }) : (tensor<3x!quant.uniform<i8:f32, 1.0>>, tensor<3xi32>, tensor<!quant.uniform<i8:f32, 1.0>>, tensor<i32>)
      -> (tensor<2x!quant.uniform<i8:f32, 1.0>>, tensor<2xi32>)
  %o = stablehlo.bitcast_convert %r#0 : (tensor<2x!quant.uniform<i8:f32, 1.0>>) -> tensor<2xi8>
  return %o, %r#1 : tensor<2xi8>, tensor<2xi32>
})";
  expect_results(text,
                 {bytes({3}, {100, 100, -3}), integers(ElementType::kS32, {3}, {16777217, 1, 2})},
                 {"[127, 97]", "[16777218, 3]"});
}

TEST(QuantizedRegions, SelectAndScatter) {
  const std::string q = "!quant.uniform<i8:f32, 1.0>";
  const std::string text =
      fmt::format(R"(func.func @main(%i: tensor<4xi8>, %j: tensor<2xi8>) -> tensor<4xi8> {{
  %x = stablehlo.bitcast_convert %i : (tensor<4xi8>) -> tensor<4x{0}>
  %u = stablehlo.bitcast_convert %j : (tensor<2xi8>) -> tensor<2x{0}>
  %z = stablehlo.constant() <{{value = dense<100> : tensor<i8>}}> : () -> tensor<{0}>
  %r = "stablehlo.select_and_scatter"(%x, %u, %z) <{{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}}> ({{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    %p = stablehlo.compare GE, %a, %b : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    %s = stablehlo.add %a, %b : tensor<{0}>
    stablehlo.return %s : tensor<{0}>
  }}) : (tensor<4x{0}>, tensor<2x{0}>, tensor<{0}>) -> tensor<4x{0}>
  %o = stablehlo.bitcast_convert %r : (tensor<4x{0}>) -> tensor<4xi8>
  return %o : tensor<4xi8>
}})",
                  q);
  expect_results(text, {bytes({4}, {1, 9, 7, 3}), bytes({2}, {5, 60})}, {"[100, 105, 127, 100]"});
}

TEST(QuantizedRegions, Scans) {
  const std::string q = "!quant.uniform<i8:f32, 1.0:5>";
  const std::string text =
      fmt::format(R"(func.func @main(%i: tensor<3xi8>) -> (tensor<3xi8>, tensor<i8>) {{
  %x = stablehlo.bitcast_convert %i : (tensor<3xi8>) -> tensor<3x{0}>
  %z = stablehlo.constant() <{{value = dense<5> : tensor<i8>}}> : () -> tensor<{0}>
  %r:2 = "chlo.scan"(%x, %z) <{{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>,
      resultSegmentSizes = array<i32: 1, 1>, is_reverse = false}}> ({{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    %s = stablehlo.add %a, %b : tensor<{0}>
    stablehlo.return %s, %s : tensor<{0}>, tensor<{0}>
  }}) : (tensor<3x{0}>, tensor<{0}>) -> (tensor<3x{0}>, tensor<{0}>)
  %o = stablehlo.bitcast_convert %r#0 : (tensor<3x{0}>) -> tensor<3xi8>
  %p = stablehlo.bitcast_convert %r#1 : (tensor<{0}>) -> tensor<i8>
  return %o, %p : tensor<3xi8>, tensor<i8>
}})",
                  q);
  expect_results(text, {bytes({3}, {6, 7, 8})}, {"[6, 8, 11]", "11"});
}

TEST(QuantizedRegions, ManyMathFunctions) {
  std::string ops;
  std::string names;
  std::string types;
  const std::string element = "!quant.uniform<i8:f32, 0.05>";
  const char* functions[] = {"sinh",    "cosh",  "erf",   "erfc", "lgamma",
                             "digamma", "asinh", "atanh", "sinh", "erf_inv"};
  for (size_t i = 0; i < std::size(functions); ++i) {
    ops += fmt::format(R"(%r{0} = "stablehlo.reduce"(%x, %z) <{{dimensions = array<i64: 1>}}> ({{
^bb0(%a: tensor<{1}>, %b: tensor<{1}>):
  %s = stablehlo.add %a, %b : tensor<{1}>
  %d = stablehlo.uniform_dequantize %s : (tensor<{1}>) -> tensor<f32>
  %e = chlo.{2} %d : tensor<f32> -> tensor<f32>
  %t = stablehlo.uniform_quantize %e : (tensor<f32>) -> tensor<{1}>
  stablehlo.return %t : tensor<{1}>
}}) : (tensor<2x1x{1}>, tensor<{1}>) -> tensor<2x{1}>
%q{0} = stablehlo.bitcast_convert %r{0} : (tensor<2x{1}>) -> tensor<2xi8>
)",
                       i, element, functions[i]);
    names += fmt::format("{}%q{}", i == 0 ? "" : ", ", i);
    types += fmt::format("{}tensor<2xi8>", i == 0 ? "" : ", ");
  }
  expect_same(
      fmt::format("func.func @main() -> ({2}) {{\n"
                  "%x = stablehlo.constant() <{{value = dense<[[3], [7]]> : tensor<2x1xi8>}}> : () "
                  "-> tensor<2x1x{0}>\n"
                  "%z = stablehlo.constant() <{{value = dense<0> : tensor<i8>}}> : () -> "
                  "tensor<{0}>\n{1}return {3} : {2}\n}}",
                  element, ops, types, names),
      {});
}

TEST(Quantized, IotaIsOfQuantizedNumbers) {
  const char* text = R"(func.func @main() -> tensor<4xi8> {
  %r = stablehlo.iota dim = 0 : tensor<4x!quant.uniform<i8:f32, 0.5:1>>
  %q = stablehlo.bitcast_convert %r : (tensor<4x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<4xi8>
  return %q : tensor<4xi8>
})";
  expect_same(text, {});
  const auto module = hlo::import_module(text, "t");
  const auto results = hlo::Evaluator(**module).run(*(*module)->entry(), std::vector<Literal>{});
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0].to_string(), "[1, 3, 5, 7]");
}

// It takes the dimensions of its operand, not the type.
TEST(Quantized, APlainConstantLikeAQuantizedOperand) {
  expect_results(R"(func.func @main(%i: tensor<2xi8>, %k: tensor<2xi64>) -> tensor<2xi64> {
  %x = stablehlo.bitcast_convert %i : (tensor<2xi8>) -> tensor<2x!quant.uniform<i8:f32, 0.1>>
  %0 = "chlo.constant_like"(%x) {value = 7 : i64} : (tensor<2x!quant.uniform<i8:f32, 0.1>>) -> tensor<2xi64>
  %1 = stablehlo.add %0, %k : tensor<2xi64>
  return %1 : tensor<2xi64>
})",
                 {bytes({2}, {1, 2}), integers(ElementType::kS64, {2}, {1, 2})}, {"[8, 9]"});
}

// Ops on stored integers that stand for simpler ones.
TEST(Quantized, DecomposableOpsThatMove) {
  expect_results(
      R"(func.func @main(%i: tensor<2xi8>, %k: tensor<3xi32>) -> (tensor<2x2xi8>, tensor<3xi8>, tensor<i32>) {
  %x = stablehlo.bitcast_convert %i : (tensor<2xi8>) -> tensor<2x!quant.uniform<i8:f32, 0.1>>
  %0 = stablehlo.broadcast %x, sizes = [2] : (tensor<2x!quant.uniform<i8:f32, 0.1>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.1>>
  %1 = "stablehlo.torch_index_select"(%x, %k) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<2x!quant.uniform<i8:f32, 0.1>>, tensor<3xi32>) -> tensor<3x!quant.uniform<i8:f32, 0.1>>
  %2 = stablehlo.get_dimension_size %0, dim = 1 : (tensor<2x2x!quant.uniform<i8:f32, 0.1>>) -> tensor<i32>
  %3 = stablehlo.bitcast_convert %0 : (tensor<2x2x!quant.uniform<i8:f32, 0.1>>) -> tensor<2x2xi8>
  %4 = stablehlo.bitcast_convert %1 : (tensor<3x!quant.uniform<i8:f32, 0.1>>) -> tensor<3xi8>
  return %3, %4, %2 : tensor<2x2xi8>, tensor<3xi8>, tensor<i32>
})",
      {bytes({2}, {5, 6}), integers(ElementType::kS32, {3}, {1, 0, 1})},
      {"[[5, 6], [5, 6]]", "[6, 5, 6]", "2"});
}

// 100 lies between two numbers of the expressed type, and becomes 96.
TEST(Quantized, ZeroPointsAreNumbersOfTheExpressedType) {
  const char* text = R"(func.func @main(%x: tensor<3xf8E4M3FN>) -> tensor<3xi8> {
  %q = stablehlo.uniform_quantize %x : (tensor<3xf8E4M3FN>) -> tensor<3x!quant.uniform<i8:f8E4M3FN, 1.0:100>>
  %r = stablehlo.bitcast_convert %q : (tensor<3x!quant.uniform<i8:f8E4M3FN, 1.0:100>>) -> tensor<3xi8>
  return %r : tensor<3xi8>
})";
  Literal x(Shape(ElementType::kF8E4M3FN, {3}));
  x.set_double(1, 8);
  x.set_double(2, -16);
  expect_results(text, {x}, {"[96, 104, 80]"});
}

}  // namespace
}  // namespace tenon::conformance
