// Converting a RawModule to a Module: erased, refused and checked features.
#include <gtest/gtest.h>

#include "hlo/import/import.h"
#include "hlo/ops/mhlo_names.h"
#include "hlo/text/printer.h"

namespace tenon::hlo {
namespace {

std::string import_error(std::string_view text) {
  const auto module = import_module(text, "t");
  return module ? "" : module.error().to_string();
}

// The HLO text of the instructions of `@f(%x: tensor<4xf32>)` around `body`.
std::string converted_body(std::string_view text, std::string_view around = "") {
  const auto module = import_module(
      fmt::format("{}\nfunc.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{}\n}}", around, text),
      "t");
  if (!module) return module.error().to_string();
  std::string out;
  for (const Instruction& op : *(*module)->find_function("f")) {
    out +=
        op.code() == OpCode::kReturn
            ? std::string(op.operand(0) == (*module)->find_function("f")->parameter(0) ? "return %x"
                                                                                       : "return")
            : print_instruction(op);
  }
  return out;
}

TEST(Convert, ArgumentsOfABodyWithoutOpsAreCounted) {
  EXPECT_EQ(import_error(R"("func.func"() ({ ^bb0(%a: tensor<f32>): })
      {sym_name = "f", function_type = () -> ()} : () -> ())"),
            "t:1:1: error: function @f has 1 arguments, its type 0");
  EXPECT_EQ(import_error(R"("func.func"() ({ ^bb0(%a: tensor<f32>): })
      {sym_name = "f", function_type = (tensor<f32>) -> ()} : () -> ())"),
            "t:1:1: error: function @f does not end in return");
}

TEST(Convert, ArgumentsOfABodyHaveTheTypesOfTheFunction) {
  EXPECT_EQ(import_error(R"("func.func"() ({
      ^bb0(%a: tensor<4xf32>):
        "func.return"(%a) : (tensor<4xf32>) -> ()
      }) {sym_name = "f", function_type = (tensor<i32>) -> tensor<i32>} : () -> ())"),
            "t:1:1: error: argument 0 of function @f is f32[4], in its type s32[]");
}

TEST(Convert, TypesOfAResultAreTheStatedOnes) {
  EXPECT_EQ(converted_body("%0 = stablehlo.abs %x : tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
            "%0 = stablehlo.abs(%1) : f32[4]\nreturn");
}

TEST(Convert, ShardingCallsAreIdentities) {
  for (const char* target :
       {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding",
        "annotate_device_placement", "LayoutConstraint"}) {
    EXPECT_EQ(converted_body(fmt::format(
                  "%0 = stablehlo.custom_call @{}(%x) {{mhlo.sharding = \"{{replicated}}\"}} : "
                  "(tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>",
                  target)),
              "return %x");
  }
}

TEST(Convert, ShardingCallsOfSeveralDevicesAreRefused) {
  EXPECT_EQ(
      converted_body(
          "%0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = \"{devices=[2]0,1}\"} : "
          "(tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
      "t:3:6: error: custom_call @Sharding: sharding {devices=[2]0,1} needs partitioning; programs "
      "run on "
      "one device");
  EXPECT_EQ(
      converted_body("%0 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<4xf32>) -> "
                     "tensor<2xf32>\n"
                     "return %x : tensor<4xf32>"),
      "t:3:6: error: stablehlo.custom_call: an identity from f32[4] to f32[2] needs partitioning");
}

TEST(Convert, OtherCustomCallsStay) {
  EXPECT_EQ(converted_body(
                "%0 = stablehlo.custom_call @foo(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn "
                "%0 : tensor<4xf32>"),
            "%0 = stablehlo.custom_call(%1) {call_target_name = \"foo\"} : f32[4]\nreturn");
}

// XLA leaves them when it converts HLO.
TEST(Convert, OpsOfMhlo) {
  for (const auto& [mhlo, ours] : kMhloUnary) {
    const std::string expected = fmt::format("%0 = {}(%1) : f32[4]\nreturn", ours);
    EXPECT_EQ(
        converted_body(fmt::format("%0 = {} %x : tensor<4xf32>\nreturn %0 : tensor<4xf32>", mhlo)),
        expected);
    EXPECT_EQ(
        converted_body(fmt::format(
            "%0 = \"{}\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>", mhlo)),
        expected);
    EXPECT_EQ(converted_body(fmt::format(
                  "%0 = stablehlo.custom_call @{}(%x) {{mhlo.attributes = {{}}, mhlo.version = 1 : "
                  "i64}} : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>",
                  mhlo)),
              expected);
  }
  EXPECT_EQ(converted_body("%0 = mhlo.copy %x : tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
            "return %x");
  const auto top = [](std::string_view config) {
    return converted_body(
        fmt::format("%0:2 = stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{{}}}}} : "
                    "(tensor<4xf32>) "
                    "-> (tensor<2xf32>, tensor<2xi32>)\nreturn %x : tensor<4xf32>",
                    config));
  };
  EXPECT_EQ(top("k = 2 : i64, largest = true"),
            "%0:2 = chlo.top_k(%1) {k = 2} : f32[2], s32[2]\nreturn %x");
  EXPECT_EQ(top("k = 2 : i64, largest = false"),
            "t:3:8: error: custom_call @mhlo.topk without k, or of the least elements");
  EXPECT_EQ(converted_body("%0 = mhlo.foo %x : tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
            "t:3:6: error: unknown op 'mhlo.foo'");
}

TEST(Convert, ShardyOps) {
  const std::string mesh = "sdy.mesh @mesh = <[\"a\"=2, \"b\"=1]>";
  EXPECT_EQ(converted_body(
                "%0 = sdy.sharding_constraint %x <@mesh, [{\"b\"}]> : tensor<4xf32>\nreturn %0 : "
                "tensor<4xf32>",
                mesh),
            "return %x");
  EXPECT_EQ(converted_body(
                "%0 = sdy.sharding_constraint %x <@mesh, [{\"a\"}]> : tensor<4xf32>\nreturn %0 : "
                "tensor<4xf32>",
                mesh),
            "t:3:6: error: sdy.sharding_constraint: sharding <@mesh, [{\"a\"}]> needs partitioning "
            "over axis "
            "\"a\" of 2 devices; programs run on one device");
  EXPECT_EQ(converted_body("%0 = \"sdy.propagation_barrier\"(%x) {allowed_direction = 1 : i32} : "
                           "(tensor<4xf32>) -> tensor<4xf32>\n"
                           "return %0 : tensor<4xf32>",
                           mesh),
            "return %x");
  EXPECT_EQ(
      converted_body(
          "%0 = \"builtin.unrealized_conversion_cast\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
          "return %0 : tensor<4xf32>"),
      "return %x");
  EXPECT_EQ(
      converted_body(
          "%0 = stablehlo.abs %x {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}]>} : tensor<4xf32>\n"
          "return %0 : tensor<4xf32>",
          mesh),
      "t:3:6: error: stablehlo.abs: sharding #sdy.sharding<@mesh, [{\"a\"}]> needs partitioning "
      "over axis "
      "\"a\" of 2 devices; programs run on one device");
}

TEST(Convert, MeshesMayStandBehindTheirUse) {
  EXPECT_EQ(import_error("func.func @f(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, "
                         "[{\"a\"}]>}) { return }\n"
                         "sdy.mesh @mesh = <[\"a\"=2]>"),
            "t:1:1: error: argument 0 of @f: sharding #sdy.sharding<@mesh, [{\"a\"}]> needs "
            "partitioning over "
            "axis \"a\" of 2 devices; programs run on one device");
}

TEST(Convert, ResultShardingsAreLookedAtToo) {
  EXPECT_EQ(import_error("func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {mhlo.sharding = "
                         "\"{devices=[2]0,1}\"}) {\n"
                         "return %x : tensor<4xf32> }"),
            "t:1:1: error: result 0 of @f: sharding {devices=[2]0,1} needs partitioning; programs "
            "run on one "
            "device");
}

constexpr std::string_view kManual =
    R"(%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{}}]>] out_shardings=[<@mesh, [{{{}}}]>] manual_axes={{}} (%y: {}) {{
  %1 = stablehlo.abs %y : {}
  {}
}} : (tensor<4xf32>) -> tensor<4xf32>
return %0 : tensor<4xf32>)";
std::string manual(std::string_view axes, std::string_view type, std::string_view end) {
  return converted_body(fmt::format(fmt::runtime(kManual), axes, type, type, end),
                        "sdy.mesh @mesh = <[\"a\"=2]>");
}

TEST(Convert, ManualComputations) {
  EXPECT_EQ(manual("", "tensor<4xf32>", "sdy.return %1 : tensor<4xf32>"),
            "%0 = stablehlo.abs(%1) : f32[4]\nreturn");
  EXPECT_EQ(manual("\"a\"", "tensor<4xf32>", "sdy.return %1 : tensor<4xf32>"),
            "t:3:6: error: sdy.manual_computation: sharding [<@mesh, [{\"a\"}]>] needs "
            "partitioning over axis "
            "\"a\" of 2 devices; programs run on one device");
  EXPECT_EQ(manual("", "tensor<2xf32>", "sdy.return %1 : tensor<2xf32>"),
            "t:3:6: error: sdy.manual_computation: argument 0 is f32[2] inside and f32[4] outside, "
            "which needs "
            "partitioning");
  EXPECT_EQ(
      manual("", "tensor<4xf32>", "sdy.return"),
      "t:3:6: error: sdy.manual_computation: the region ends in sdy.return with 0 values, expected "
      "sdy.return with 1");
  EXPECT_EQ(manual("", "tensor<4xf32>", ""),
            "t:3:6: error: sdy.manual_computation: the region ends in stablehlo.abs with 1 values, "
            "expected "
            "sdy.return with 1");
  EXPECT_EQ(
      converted_body(
          "%0 = \"sdy.manual_computation\"(%x) ({ \"sdy.return\"(%x) : (tensor<4xf32>) -> () }) : "
          "(tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
      "t:3:6: error: sdy.manual_computation: one region with as many arguments as operands is "
      "expected");
}

TEST(Convert, Errors) {
  const std::pair<const char*, const char*> cases[] = {
      {"\"func.func\"() <{sym_name = \"f\", function_type = () -> (), sym_visibility = \"mine\"}> "
       "({ "
       "return }) : () -> ()",
       "t:1:1: error: func.func: visibility 'mine' is neither public, private nor nested"},
      {"\"func.func\"() <{sym_name = \"f\", function_type = () -> (), res_attrs = [{a}, {a}]}> ({ "
       "return }) : () -> ()",
       "t:1:1: error: function @f: arg_attrs and res_attrs have 0 and 2 entries for 0 arguments "
       "and "
       "0 results"},
      {"func.func @f() { return }\nfunc.func @f() { return }",
       "t:2:1: error: function @f is defined twice"},
      {"func.func @f() { %0 = stablehlo.constant dense<1> : tensor<i32> }",
       "t:1:1: error: function @f does not end in return"},
      {"func.func @f() { \"func.return\"() : () -> ()\n %0 = stablehlo.constant dense<1> : "
       "tensor<i32> }",
       "t:1:1: error: function @f does not end in return"},
      {"func.func @f() {}", ""},  // an empty body is a declaration
      {"%0 = stablehlo.constant dense<1> : tensor<i32>",
       "t:1:6: error: stablehlo.constant stands outside a function"},
      {"module { module {} }", "t:1:10: error: builtin.module stands outside a function"},
      {"func.func @f() { \"foo.bar\"() : () -> () return }", "t:1:18: error: unknown op 'foo.bar'"},
      {"func.func @f() { \"tenon.parameter\"() : () -> () return }",
       "t:1:18: error: unknown op 'tenon.parameter'"},
      {"\"func.func\"() ({}) : () -> ()",
       "t:1:1: error: func.func: sym_name or function_type is missing"},
      {"\"func.func\"() ({ \"func.return\"() : () -> () }) {sym_name = \"f\", function_type = "
       "(i32) -> ()} : () -> ()",
       "t:1:1: error: function @f has 0 arguments, its type 1"},
      {"func.func @f(%x: tensor<2xf32>) {\n%0 = stablehlo.transpose %x, dims = [0] {permutation = "
       "1} : (tensor<2xf32>) -> tensor<2xf32>\nreturn }",
       nullptr},
      {"func.func @f(%x: tensor<2xf32>) {\n%0 = \"stablehlo.transpose\"(%x) {permutation = \"a\"} "
       ": (tensor<2xf32>) -> tensor<2xf32>\nreturn }",
       "t:2:6: error: stablehlo.transpose: attribute permutation is not a list of integers"},
      {"func.func @f(%x: tensor<2xf32>) {\n%0 = \"sdy.reshard\"(%x, %x) : (tensor<2xf32>, "
       "tensor<2xf32>) -> tensor<2xf32>\nreturn }",
       "t:2:6: error: sdy.reshard: expected one operand and one result"},
      {"func.func @f(%x: tensor<2xf32>) -> tensor<3xf32> { return %x : tensor<2xf32> }", nullptr},
      {"func.func @f() { call @g() : () -> () return }", nullptr},
  };
  for (const auto& [text, error] : cases) {
    const std::string found = import_error(text);
    if (error == nullptr) {
      EXPECT_NE(found, "") << text;
    } else {
      EXPECT_EQ(found, error) << text;
    }
  }
}

TEST(Convert, ErrorsNameTheirStage) {
  const auto module = import_module("func.func @f() { return }\nfunc.func @f() { return }", "t");
  EXPECT_EQ(module.error().stage(), "import");
}

TEST(Convert, SegmentSizesAreNotKept) {
  const auto module = import_module(
      "func.func @f(%x: tensor<2xf32>) {\n"
      "%0 = \"stablehlo.abs\"(%x) {operandSegmentSizes = array<i32: 1>} : (tensor<2xf32>) -> "
      "tensor<2xf32>\nreturn }",
      "t");
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_TRUE((*module)->entry()->first()->discardable().empty());
}

TEST(Convert, AttributesThatEqualTheirDefaultGo) {
  const auto module = import_module(
      "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "%0 = stablehlo.custom_call @a(%x) {api_version = 1 : i32, has_side_effect = false, "
      "backend_config = \"\", called_computations = []} : (tensor<2xf32>) -> tensor<2xf32>\nreturn "
      "%0 : tensor<2xf32> }",
      "t");
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_EQ(print_instruction(*(*module)->entry()->first()),
            "%0 = stablehlo.custom_call(%1) {call_target_name = \"a\"} : f32[2]\n");
}

// A list of defaults with the wrong length is not the default.
TEST(Convert, DefaultsOfAnotherLengthAreRefused) {
  const auto convolution = [](std::string_view window, std::string_view more = "") {
    return import_error(fmt::format(
        "func.func @f(%a: tensor<1x2x2x1xf32>, %k: tensor<1x1x1x1xf32>) -> tensor<1x2x2x1xf32> {{\n"
        "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {{{}}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64{}}} : "
        "(tensor<1x2x2x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x2x2x1xf32>\n"
        "return %r : tensor<1x2x2x1xf32>\n}}",
        window, more));
  };
  EXPECT_EQ(convolution("stride = [1, 1], pad = [[0, 0], [0, 0]], reverse = [false, false]"), "");
  for (const char* window : {"stride = [1, 1, 1]", "pad = [[0, 0]]", "lhs_dilate = [1]",
                             "rhs_dilate = []", "reverse = [false]"}) {
    EXPECT_NE(convolution(window), "") << window;
  }
  EXPECT_NE(convolution("",
                        ", precision_config = [#stablehlo<precision DEFAULT>, "
                        "#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]"),
            "");
  const auto pool = [](std::string_view more) {
    return import_error(fmt::format(
        "func.func @f(%a: tensor<4xf32>, %z: tensor<f32>) -> tensor<4xf32> {{\n"
        "%r = \"stablehlo.reduce_window\"(%a, %z) <{{window_dimensions = array<i64: 1>{}}}> ({{\n"
        "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%s = stablehlo.add %x, %y : tensor<f32>\n"
        "stablehlo.return %s : tensor<f32>\n}}) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n"
        "return %r : tensor<4xf32>\n}}",
        more));
  };
  EXPECT_EQ(pool(", window_strides = array<i64: 1>, padding = dense<0> : tensor<1x2xi64>"), "");
  for (const char* more :
       {", window_strides = array<i64: 1, 1>", ", base_dilations = array<i64>",
        ", window_dilations = array<i64: 1, 1>", ", padding = dense<0> : tensor<2x2xi64>",
        ", padding = dense<0> : tensor<1x3xi64>"}) {
    EXPECT_NE(pool(more), "") << more;
  }
}

TEST(Convert, ARawModuleOfAnotherKindIsRefused) {
  RawModule raw;
  raw.module.name = "foo";
  EXPECT_EQ(build_module(raw).error().message(), "expected a module, found foo");
}

TEST(Convert, ValuesUsedBeforeTheirDefinition) {
  RawModule raw;
  raw.module.name = "builtin.module";
  raw.module.regions.emplace_back();
  RawOp f;
  f.name = "func.func";
  insert(f.attributes, "sym_name", Attribute("f"));
  insert(f.attributes, "function_type", Attribute(Type::function({}, {})));
  f.regions.emplace_back();
  RawOp abs;
  abs.name = "stablehlo.abs";
  abs.operands = {0};
  raw.value_types = {Type::tensor(ElementType::kF32, {})};
  f.regions[0].ops.push_back(abs);
  raw.module.regions[0].ops.push_back(f);
  EXPECT_EQ(build_module(raw).error().message(),
            "stablehlo.abs: an operand is used before its definition");
}

}  // namespace
}  // namespace tenon::hlo
