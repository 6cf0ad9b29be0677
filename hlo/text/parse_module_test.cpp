// Modules, functions, value names and scopes, and ops of other dialects.
#include "hlo/text/text_test_util.h"

namespace tenon::hlo {
namespace {

using testing::import_error;
using testing::read;

TEST(ParseModule, Frames) {
  for (const char* text : {
           "func.func @f() { return }",
           "module { func.func @f() { return } }",
           "module @m attributes {a = 1 : i32} { func.func @f() { return } } loc(unknown)",
           "builtin.module @m { func.func @f() { return } }",
           "\"builtin.module\"() <{sym_name = \"m\"}> ({ func.func @f() { return } }) : () -> ()",
           "\"builtin.module\"() ({ \"func.func\"() <{sym_name = \"f\", function_type = () -> ()}> "
           "({ "
           "\"func.return\"() : () -> () }) : () -> () }) {sym_name = \"m\"} : () -> ()",
           "hlo_module @m { func.func @f() { stablehlo.return() } }",
       }) {
    const auto module = read(text);
    ASSERT_TRUE(module);
    EXPECT_NE(module->find_function("f"), nullptr) << text;
    EXPECT_EQ(module->name(), std::string_view(text).find("m\"") != std::string_view::npos ||
                                      std::string_view(text).find("@m") != std::string_view::npos
                                  ? "m"
                                  : "");
  }
}

TEST(ParseModule, EverythingAboutAFunction) {
  const auto module = read(R"(
func.func public @"a b"(%x: tensor<f32> {jax.buffer_donor = true}, %y: tensor<f32>) -> (tensor<f32> {jax.result_info = "r"}, tensor<f32>) attributes {k = "v"} {
  return %x, %y : tensor<f32>, tensor<f32>
}
func.func private @decl(tensor<f32> {k}, tensor<i1>) -> tensor<i1>
func.func nested @n() { return }
)");
  ASSERT_TRUE(module);
  EXPECT_EQ(print_module(*module), R"(hlo_module {
  func.func public @"a b"(%arg0: f32[] {jax.buffer_donor = true}, %arg1: f32[]) -> (f32[] {jax.result_info = "r"}, f32[]) attributes {k = "v"} {
    stablehlo.return(%arg0, %arg1)
  }
  func.func private @decl(f32[] {k}, pred[]) -> (pred[])
  func.func nested @n() {
    stablehlo.return()
  }
}
)");
  testing::expect_round_trip(*module);
}

TEST(ParseModule, SeveralResultsAreNamedInAnyWay) {
  for (const char* names : {"%0:3", "%a, %b, %c", "%a:2, %c", "%a, %b:2"}) {
    const std::string text(names);
    const char* use = text == "%0:3" ? "%0#2" : text == "%a, %b:2" ? "%b#1" : "%c";
    const auto module = read(fmt::format(
        "func.func @f(%x: tensor<f32>, %y: tensor<i1>) -> tensor<i1> {{\n"
        "{} = stablehlo.optimization_barrier %x, %x, %y : tensor<f32>, tensor<f32>, tensor<i1>\n"
        "return {} : tensor<i1>\n}}",
        names, use));
    ASSERT_TRUE(module);
    EXPECT_EQ(module->entry()->return_instruction()->operand(0).index, 2u);
  }
}

TEST(ParseModule, SiblingRegionsMayReuseNames) {
  EXPECT_TRUE(read(testing::program(R"(
%q = stablehlo.constant dense<true> : tensor<i1>
%0 = "stablehlo.if"(%q) ({
  %v = stablehlo.abs %s : tensor<f32>
  stablehlo.return %v : tensor<f32>
}, {
  %v = stablehlo.negate %s : tensor<f32>
  stablehlo.return %v : tensor<f32>
}) : (tensor<i1>) -> tensor<f32>
%v = stablehlo.abs %0 : tensor<f32>)")));
}

TEST(ParseModule, NamesOfARegionEndWithIt) {
  EXPECT_EQ(import_error(testing::program(R"(%q = stablehlo.constant dense<true> : tensor<i1>
%0 = "stablehlo.if"(%q) ({
  %v = stablehlo.abs %s : tensor<f32>
  stablehlo.return %v : tensor<f32>
}, {
  stablehlo.return %v : tensor<f32>
}) : (tensor<i1>) -> tensor<f32>)")),
            "t:7:20: error: %v is not defined here");
}

TEST(ParseModule, FunctionsSeeNoValuesOfOthers) {
  EXPECT_EQ(import_error("func.func @f(%x: tensor<f32>) { return }\nfunc.func @g() -> tensor<f32> "
                         "{ return %x : tensor<f32> }"),
            "t:2:40: error: %x is not defined here");
}

TEST(ParseModule, AnInnerNameHidesTheOuterOneUntilItsEnd) {
  const auto module = read(testing::program(
      R"(%0 = stablehlo.reduce(%a init: %s) across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
 reducer(%a: tensor<f32>, %s: tensor<f32>) {
  %1 = stablehlo.add %a, %s : tensor<f32>
  stablehlo.return %1 : tensor<f32>
}
%1 = stablehlo.abs %a : tensor<2x3xf32>)"));
  ASSERT_TRUE(module);
}

TEST(ParseModule, NamesOfAllKinds) {
  EXPECT_TRUE(read(
      "func.func @f.x$1(%-a.b$_3: tensor<f32>) -> tensor<f32> { return %-a.b$_3 : tensor<f32> }"));
}

TEST(ParseModule, CommentsAnywhere) {
  EXPECT_TRUE(read("// a\nfunc.func @f( // b\n) { // c }\nreturn // d\n} // e"));
}

// --- check.*, interpreter.* and sdy.*

std::string body(std::string_view text) {
  const auto module = read(testing::program(text));
  if (module == nullptr) return "";
  testing::expect_round_trip(*module);
  return testing::body_of(*module);
}

TEST(ParseModule, ChecksBecomeCustomCalls) {
  EXPECT_EQ(body("check.expect_eq %a, %b : tensor<2x3xf32>"),
            "stablehlo.custom_call(%arg0, %arg1) {call_target_name = \"check.expect_eq\", "
            "has_side_effect = true}\n");
  EXPECT_EQ(body("check.expect_eq_const %s, dense<1.0> : tensor<f32>"),
            "%0 = stablehlo.constant() {value = dense<1.0> : f32[]} : f32[]\n"
            "stablehlo.custom_call(%arg4, %0) {call_target_name = \"check.expect_eq\", "
            "has_side_effect = true}\n");
  EXPECT_EQ(body("check.expect_almost_eq_const %s, dense<1.0> : tensor<f32>"),
            "%0 = stablehlo.constant() {value = dense<1.0> : f32[]} : f32[]\n"
            "stablehlo.custom_call(%arg4, %0) {call_target_name = \"check.expect_almost_eq\", "
            "has_side_effect = true}\n");
  EXPECT_EQ(body("check.expect_close %a, %b, max_ulp_difference = 3, min_ulp_difference = 1 : "
                 "tensor<2x3xf32>, tensor<2x3xf32>"),
            "stablehlo.custom_call(%arg0, %arg1) {backend_config = {max_ulp_difference = 3 : i64, "
            "min_ulp_difference = 1 : i64}, "
            "call_target_name = \"check.expect_close\", has_side_effect = true}\n");
  EXPECT_EQ(body("check.expect_almost_eq %a, %b, tolerance = 0.1 : tensor<2x3xf32>"),
            "stablehlo.custom_call(%arg0, %arg1) {backend_config = {tolerance = 0.1 : f64}, "
            "call_target_name = \"check.expect_almost_eq\", has_side_effect = true}\n");
}

TEST(ParseModule, InterpreterOps) {
  EXPECT_EQ(body("interpreter.print %a : tensor<2x3xf32>"),
            "stablehlo.custom_call(%arg0) {call_target_name = \"interpreter.print\", "
            "has_side_effect = true}\n");
  EXPECT_EQ(
      body("%0 = interpreter.probe %a, probe_id = \"p\" : tensor<2x3xf32>"),
      "%0 = stablehlo.custom_call(%arg0) {backend_config = {probe_id = \"p\"}, call_target_name = "
      "\"interpreter.probe\", has_side_effect = true} : f32[2,3]\n");
}

TEST(ParseModule, ShardyOpsOfOneDeviceLeaveNothing) {
  EXPECT_EQ(body("%0 = sdy.sharding_constraint %a <@mesh, [{\"a\"}, {}]> : tensor<2x3xf32>\n"
                 "%1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<2x3xf32>\n"
                 "sdy.sharding_group %1 group_id = 3 : tensor<2x3xf32>\n"
                 "%2 = stablehlo.abs %1 : tensor<2x3xf32>"),
            "%0 = stablehlo.abs(%arg0) : f32[2,3]\n");
}

TEST(ParseModule, ManualComputationsAreInlined) {
  EXPECT_EQ(
      body(
          R"(%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"a"} (%x: tensor<2x3xf32>) {
  %1 = stablehlo.abs %x : tensor<2x3xf32>
  sdy.return %1 : tensor<2x3xf32>
} : (tensor<2x3xf32>) -> tensor<2x3xf32>
%2 = stablehlo.negate %0 : tensor<2x3xf32>)"),
      "%0 = stablehlo.abs(%arg0) : f32[2,3]\n%1 = stablehlo.negate(%0) : f32[2,3]\n");
}

TEST(ParseModule, MeshesStandAtModuleLevel) {
  const auto module =
      read("module { sdy.mesh @mesh = <[\"a\"=1, \"b\"=1]>\nfunc.func @f() { return } }");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->functions().size(), 1u);
  // As JAX prints them.
  EXPECT_TRUE(
      read("module { sdy.mesh @mesh = <[\"d\"=1]> {stablehlo.mesh = {mesh = @mesh, n = 1 : "
           "i64}}\nfunc.func @f() { return } }"));
}

TEST(ParseModule, ChloScan) {
  EXPECT_EQ(
      body(R"(%0:2 = chlo.scan(%a) inits(%s) dimension=0 {
^bb0(%x: tensor<3xf32>, %y: tensor<f32>):
  stablehlo.return %x, %y : tensor<3xf32>, tensor<f32>
} : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>))"),
      "%0:2 = chlo.scan(%arg0, %arg4) {dimension = 0} ({\n^bb0(%arg8: f32[3], %arg9: f32[]):\n"
      "  stablehlo.return(%arg8, %arg9)\n}) : f32[2,3], f32[]\n");
}

}  // namespace
}  // namespace tenon::hlo
