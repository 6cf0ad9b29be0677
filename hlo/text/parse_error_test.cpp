// Errors of ops, functions and modules, each with its position and exact text.
#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::parse_error;

// The op is alone on line 2.
std::string op_error(std::string_view op) {
  return parse_error(fmt::format(
      "func.func @f(%a: tensor<2xf32>, %n: tensor<i32>, %t: !stablehlo.token) {{\n{}\nreturn\n}}",
      op));
}

TEST(ParseError, Ops) {
  const std::pair<const char*, const char*> cases[] = {
      {"5", "t:2:1: error: expected an op, found '5'"},
      {"%0", "t:3:1: error: expected '=', found 'return'"},
      {"% = stablehlo.add", "t:2:3: error: expected a value name after '%', found '='"},
      {"%0:0 = stablehlo.abs %a : tensor<2xf32>", "t:2:6: error: 0 results cannot be named"},
      {"%0:9999999 = stablehlo.abs %a : tensor<2xf32>",
       "t:2:12: error: 9999999 results cannot be named"},
      {"%0:2 = stablehlo.abs %a : tensor<2xf32>",
       "t:2:1: error: stablehlo.abs has 1 results, 2 are named"},
      {"stablehlo.foo %a : tensor<2xf32>", "t:2:1: error: unknown op 'stablehlo.foo'"},
      {"%0 = foo.bar %a : tensor<2xf32>", "t:2:6: error: unknown op 'foo.bar'"},
      {"%0 = stablehlo.gather %a : tensor<2xf32>",
       "t:2:6: error: stablehlo.gather has no pretty form; write it as \"stablehlo.gather\"(…)"},
      {"%0 = sdy.all_reduce %a",
       "t:2:6: error: the parser does not know a pretty form of sdy.all_reduce"},
      {"%0 = stablehlo.parameter", "t:2:6: error: unknown op 'stablehlo.parameter'"},
      {"%0 = stablehlo.abs %b : tensor<2xf32>", "t:2:20: error: %b is not defined here"},
      {"%0 = stablehlo.abs %0 : tensor<2xf32>", "t:2:20: error: %0 is not defined here"},
      {"%0 = stablehlo.abs %a#1 : tensor<2xf32>",
       "t:2:20: error: %a has 1 results, there is no #1"},
      {"%0 = stablehlo.abs %a : tensor<3xf32>",
       "t:3:1: error: stablehlo.abs: operand 0 has type f32[2], written as f32[3]"},
      {"%0 = stablehlo.add %a, %a : (tensor<2xf32>) -> tensor<2xf32>",
       "t:3:1: error: stablehlo.add: 2 operands but 1 operand types"},
      {"%0 = stablehlo.abs %a", "t:3:1: error: expected ':', found 'return'"},
      {"%0 = stablehlo.abs %a : (tensor<2xf32>) tensor<2xf32>",
       "t:2:41: error: expected '->', found 'tensor'"},
      {"%0 = stablehlo.compare XX, %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>",
       "t:2:24: error: 'XX' is not a valid comparison_direction"},
      {"%0 = stablehlo.iota size = 0 : tensor<2xf32>",
       "t:2:21: error: expected 'dim', found 'size'"},
      {"%0 = stablehlo.transpose %a, dims = 0 : (tensor<2xf32>) -> tensor<2xf32>",
       "t:2:37: error: a number cannot have type function<(f32[2]) -> (f32[2])>"},
      {"%0 = stablehlo.concatenate %a, dim = x : (tensor<2xf32>) -> tensor<2xf32>",
       "t:2:38: error: expected an integer, found 'x'"},
      {"%0 = stablehlo.constant 5",
       "t:3:1: error: the value of a constant is dense<…> or dense_resource<…>"},
      {"%0 = stablehlo.select %a, %a, %a : tensor<2xf32>",
       "t:3:1: error: select is followed by two types, found 1"},
      {"%0 = stablehlo.slice %a [0] : (tensor<2xf32>) -> tensor<2xf32>",
       "t:2:27: error: expected ':', found ']'"},
      {"%0 = stablehlo.dot_general %a, %a, foo = 1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>",
       "t:2:36: error: unknown part 'foo' of dot_general"},
      {"%0 = stablehlo.convolution(%a, %a) dim_numbers = [b, f]x[i, o]->[b, f], window = {foo = 1}",
       "t:2:83: error: unknown window part 'foo'"},
      {"%0 = stablehlo.convolution(%a, %a) dim_numbers = [b, f]x[i, o]->[b, f], window = {pad = "
       "[[1]]}",
       "t:2:93: error: padding is a list of pairs"},
      {"%0 = stablehlo.reduce_precision %a, format = f5 : tensor<2xf32>",
       "t:2:46: error: 'f5' is not a format such as e5m10"},
      {"%0 = stablehlo.reduce_precision %a, format = e5m10x : tensor<2xf32>",
       "t:2:46: error: 'e5m10x' is not a format such as e5m10"},
      {"%0 = stablehlo.reduce(%a init %n) across dimensions = [0]",
       "t:2:31: error: expected ':', found '%'"},
      {"%0 = stablehlo.reduce(%a init: %n) across dimensions = [0] : (tensor<2xf32>, tensor<i32>) "
       "-> tensor<f32>",
       "t:3:1: error: expected 'reducer', found 'return'"},
      {"stablehlo.while() cond { stablehlo.return } { }",
       "t:2:45: error: expected 'do', found '{'"},
      {"%0 = stablehlo.while(%x = %a) : tensor<i32> cond {} do {}",
       "t:2:45: error: stablehlo.while: operand 0 has type f32[2], written as s32[]"},
      {"stablehlo.custom_call foo()", "t:2:23: error: expected '@', found 'foo'"},
      {"stablehlo.composite %a", "t:2:21: error: expected a string, found '%'"},
      {"call %a", "t:2:6: error: expected '@', found '%'"},
      {"%0:2 = chlo.top_k(%a, n = 2) : tensor<2xf32> -> (tensor<2xf32>, tensor<2xi32>)",
       "t:2:23: error: expected 'k', found 'n'"},
      {"%0 = chlo.erf %a : tensor<2xf32>", "t:3:1: error: expected '->', found 'return'"},
      {"%0 = \"stablehlo.abs\"(%a)[^bb1] : (tensor<2xf32>) -> tensor<2xf32>",
       "t:2:25: error: stablehlo.abs: successor blocks are not supported"},
      {"%0 = \"stablehlo.abs\"(%a) <{a = 1}> {a = 2} : (tensor<2xf32>) -> tensor<2xf32>",
       "t:2:37: error: attribute 'a' is given twice"},
      {"\"stablehlo.if\"(%n) ({\nstablehlo.return\n^bb1:\n}) : (tensor<i32>) -> ()",
       "t:4:1: error: a region with several blocks is not supported"},
      {"return\n^bb1:", "t:3:1: error: a region with several blocks is not supported"},
      {"\"stablehlo.if\"(%n) ({\n^bb0(%x tensor<f32>):\n}) : (tensor<i32>) -> ()",
       "t:3:9: error: expected ':', found 'tensor'"},
      {"\"stablehlo.if\"(%n) ({", "t:4:2: error: expected ')', found the end of the text"},
      {"check.expect_eq %a, %b : tensor<2xf32>", "t:2:21: error: %b is not defined here"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(op_error(text), error) << text;
}

TEST(ParseError, FunctionsAndModules) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "t:1:1: error: expected a module or a function, found the end of the text"},
      {"// nothing", "t:1:11: error: expected a module or a function, found the end of the text"},
      {"module", "t:1:7: error: expected '{', found the end of the text"},
      {"module {", "t:1:9: error: expected '}', found the end of the text"},
      {"module {} }", "t:1:11: error: expected the end of the text, found '}'"},
      {"module @ {}", "t:1:10: error: expected a symbol name, found '{'"},
      {"func.func f()", "t:1:11: error: expected '@', found 'f'"},
      {"func.func @f", "t:1:13: error: expected '(', found the end of the text"},
      {"func.func @f(%a)", "t:1:16: error: expected ':', found ')'"},
      {"func.func @f(tensor<f32>", "t:1:25: error: expected ')', found the end of the text"},
      {"func.func @f() -> tensor", "t:1:25: error: expected '<', found the end of the text"},
      {"func.func @f() {", "t:1:17: error: expected '}', found the end of the text"},
      {"func.func @f() attributes [", "t:1:27: error: expected '{', found '['"},
      {"\"builtin.module\"() ({}) : ()", "t:1:29: error: expected '->', found the end of the text"},
      {"#a = foo\nfunc.func @f()", "t:1:6: error: unknown attribute 'foo'"},
      {"!a = foo\nfunc.func @f()", "t:1:6: error: unknown type 'foo'"},
      {"func.func @f()\n#a = foo", "t:2:6: error: unknown attribute 'foo'"},
      {"hlo_module attributes {a = b} {}", "t:1:28: error: unknown attribute 'b'"},
      {"hlo_module { func.func @f(%a: pred[]) { %0 = stablehlo.compare(%a, %a) "
       "{comparison_direction "
       "= foo} : pred[] } }",
       "t:1:96: error: 'foo' is not a valid comparison_direction"},
      {"func.func @f(%a: tensor<f32>, %a: tensor<f32>)", "t:1:32: error: %a is defined twice"},
      {"func.func @f(%a: tensor<f32>) { %b = stablehlo.abs %a : tensor<f32>\n"
       "%b = stablehlo.abs %a : tensor<f32> }",
       "t:2:2: error: %b is defined twice"},
      {"func.func @f()\n#a", "t:2:1: error: expected the end of the text, found '#'"},
      {"\x01\x02", "t:1:1: error: expected an op, found '\x01'"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(parse_error(text), error) << text;
}

TEST(ParseError, ErrorsNameTheirStage) {
  EXPECT_EQ(parse_mlir_text("x", "t").error().stage(), "parse");
  EXPECT_EQ(parse_mlir_text("x", "t").error().code(), ErrorCode::kInvalidArgument);
}

TEST(ParseError, RegionsOfRegionsAreBounded) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "\"stablehlo.case\"(%n) ({";
  EXPECT_EQ(op_error(text), "t:2:5866: error: nested deeper than 256 levels");
  ImportLimits limits;
  limits.max_depth = 3;
  EXPECT_EQ(parse_mlir_text("module { module { module { module {} } } }", "t", limits)
                .error()
                .to_string(),
            "t:1:28: error: nested deeper than 3 levels");
}

// A program that is truncated or garbled at any position gives an error, never a crash.
TEST(ParseError, EveryPrefixOfAProgramIsAnError) {
  const std::string text = testing::program(
      R"(%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
%1 = "stablehlo.sort"(%0) ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %2 = stablehlo.compare LT, %x, %y, TOTALORDER {k = [1, "s"]} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %2 : tensor<i1>
}) : (tensor<3xf32>) -> tensor<3xf32> loc("a"(callsite("b":1:2 at #loc)))
%3 = stablehlo.constant dense<[1.0, 0x7F800000, -2.0e5]> : tensor<3xf32>)");
  const size_t end = text.find("\nfunc.func private @g(");
  // The first line without its brace is a declaration.
  for (size_t size = text.find('\n'); size + 2 < end; ++size) {
    EXPECT_FALSE(parse_mlir_text(text.substr(0, size), "t")) << size;
  }
}

TEST(ParseError, NoByteCrashesTheReader) {
  const std::string text = testing::program(
      "%0 = stablehlo.pad %a, %s, low = [0, -1], high = [1, 0], "
      "interior = [0, 2] {k = 1} : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x6xf32>");
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '"', '<', '{', '%', '0', 'x', '-', '\xFF'}) {
      std::string changed = text;
      changed[at] = c;
      (void)import_module(changed, "t");
    }
  }
  SUCCEED();
}

}  // namespace
}  // namespace tenon::hlo
