// Control flow, wide mode, limits, custom calls and checks.
#include "hlo/evaluator/evaluator.h"

#include <cmath>

#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/eval_test_util.h"

namespace tenon::hlo {
namespace {

using testing::compare_region;
using testing::constant;
using testing::eval;
using enum ElementType;

std::unique_ptr<Module> read(std::string_view text) {
  auto module = import_module(text, "t");
  EXPECT_TRUE(module) << module.error().to_string();
  return std::move(*module);
}

// --- Control flow

std::string cases(const char* index) {
  const auto branch = [](int value) {
    return "{\n" + constant("v", "s32[]", std::to_string(value)) + "stablehlo.return(%v)\n}";
  };
  return eval(
      constant("i", "s32[]", index) + fmt::format("%r = stablehlo.case(%i) ({}, {}, {}) : s32[]",
                                                  branch(10), branch(20), branch(30)),
      "%r", "s32[]");
}

TEST(Control, ACaseOutOfRangeIsTheLastBranch) {
  EXPECT_EQ(cases("0"), "10");
  EXPECT_EQ(cases("1"), "20");
  EXPECT_EQ(cases("2"), "30");
  EXPECT_EQ(cases("3"), "30");
  EXPECT_EQ(cases("-1"), "30");
}

TEST(Control, OnlyTheChosenBranchRuns) {
  const auto branch = [](bool good) {
    return good ? std::string("{\nstablehlo.return(%x)\n}")
                : std::string(
                      "{\n%v = stablehlo.custom_call() {call_target_name = \"unknown\"} : "
                      "s32[]\nstablehlo.return(%v)\n}");
  };
  for (const bool pred : {true, false}) {
    EXPECT_EQ(
        eval(constant("x", "s32[]", "7") + constant("p", "pred[]", pred ? "true" : "false") +
                 fmt::format("%r = stablehlo.if(%p) ({}, {}) : s32[]", branch(pred), branch(!pred)),
             "%r", "s32[]"),
        "7");
  }
}

std::string count_to(const char* limit) {
  return eval(constant("zero", "s32[]", "0") + constant("n", "s32[]", limit) +
                  "%r:2 = stablehlo.while(%zero, %zero) ({\n^bb0(%i: s32[], %s: s32[]):\n"
                  "%p = stablehlo.compare(%i, %n) {comparison_direction = LT} : "
                  "pred[]\nstablehlo.return(%p)\n}, {\n"
                  "^bb0(%i: s32[], %s: s32[]):\n" +
                  constant("one", "s32[]", "1") +
                  "%j = stablehlo.add(%i, %one) : s32[]\n%t = stablehlo.add(%s, %j) : "
                  "s32[]\nstablehlo.return(%j, %t)\n}) : s32[], s32[]",
              "%r#0, %r#1", "s32[], s32[]");
}

TEST(Control, While) {
  EXPECT_EQ(count_to("4"), "4; 10");
  EXPECT_EQ(count_to("0"), "0; 0");  // without an iteration, the results are the inputs
}

TEST(Control, TuplesBarriersAndCalls) {
  EXPECT_EQ(eval(constant("x", "s32[]", "1") + constant("y", "s32[]", "2") +
                     "%t = stablehlo.tuple(%x, %y) : tuple<s32[], s32[]>\n"
                     "%b = stablehlo.optimization_barrier(%t) : tuple<s32[], s32[]>\n"
                     "%r = stablehlo.get_tuple_element(%b) {index = 1} : s32[]",
                 "%r", "s32[]"),
            "2");
  const auto module = read(R"(
func.func @main(%x: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %0 = call @twice(%x) : (tensor<i32>) -> tensor<i32>
  %1 = stablehlo.composite "a.b" %0 {decomposition = @twice} : (tensor<i32>) -> tensor<i32>
  return %0, %1 : tensor<i32>, tensor<i32>
}
func.func private @twice(%x: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.add %x, %x : tensor<i32>
  return %0 : tensor<i32>
})");
  const auto results =
      Evaluator(*module).run(*module->entry(), std::vector<Literal>{Literal::scalar(kS32, 5)});
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0].get_integer(0), 10);
  EXPECT_EQ((*results)[1].get_integer(0), 20);
}

TEST(Control, TokensAreLeftOut) {
  EXPECT_EQ(eval("%t = stablehlo.after_all() : token\n" + constant("x", "s32[]", "1"), "%t, %x",
                 "token, s32[]"),
            "1");
}

// --- Arguments

TEST(Arguments, AreChecked) {
  const auto module =
      read("func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> { return %x : tensor<2xi32> }");
  Evaluator evaluator(*module);
  const Computation& f = *module->entry();
  EXPECT_EQ(evaluator.run(f, std::vector<Literal>{}).error().message(),
            "@main takes 1 arguments, 0 given");
  EXPECT_EQ(evaluator.run(f, std::vector<Literal>{Literal(Shape(kS32, {3}))}).error().message(),
            "argument 0 of @main is s32[3], expected s32[2]");
  EXPECT_EQ(evaluator.run(f, std::vector<Literal>{Literal(Shape(kF32, {2}))}).error().message(),
            "argument 0 of @main is f32[2], expected s32[2]");
}

TEST(Arguments, OfQuantizedParametersAreStorageValues) {
  const auto module = read(
      "func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32> {\n"
      "%0 = stablehlo.uniform_dequantize %x : (tensor<2x!quant.uniform<i8:f32, 0.5>>) -> "
      "tensor<2xf32>\n"
      "return %0 : tensor<2xf32> }");
  Literal x(Shape(kS8, {2}));
  x.set_integer(0, 3);
  const auto results = Evaluator(*module).run(*module->entry(), std::vector<Literal>{x});
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_EQ((*results)[0].to_string(), "[1.5, 0]");
  EXPECT_FALSE(
      Evaluator(*module).run(*module->entry(), std::vector<Literal>{Literal(Shape(kF32, {2}))}));
  EXPECT_FALSE(
      Evaluator(*module).run(*module->entry(), std::vector<Literal>{Literal(Shape(kS8, {3}))}));
}

// --- Wide mode

TEST(Wide, NothingIsRoundedInBetween) {
  const auto sums = [](const char* type, const char* large, bool wide) {
    EvaluatorOptions options;
    options.wide = wide;
    return eval(
        constant("a", type, large) + constant("b", type, "1") +
            fmt::format("%c = stablehlo.add(%a, %b) : {}\n%r = stablehlo.subtract(%c, %a) : {}",
                        type, type),
        "%r", type, options);
  };
  EXPECT_EQ(sums("f32[]", "16777216", false), "0");
  EXPECT_EQ(sums("f32[]", "16777216", true), "1");
  EXPECT_EQ(sums("f64[]", "9007199254740992", false), "0");
  EXPECT_EQ(sums("f64[]", "9007199254740992", true), "1");
}

TEST(Wide, SumsOfProducts) {
  EvaluatorOptions options;
  options.wide = true;
  EXPECT_EQ(eval(constant("x", "f64[3]", "[9007199254740992, 1, -9007199254740992]") +
                     constant("y", "f64[3]", "[1, 1, 1]") +
                     "%r = stablehlo.dot_general(%x, %y) {dot_dimension_numbers = "
                     "#stablehlo.dot<lhs_contracting_dimensions = [0], "
                     "rhs_contracting_dimensions = [0]>} : f64[]",
                 "%r", "f64[]", options),
            "1");
}

TEST(Wide, FunctionsAndConversionsStayExact) {
  EvaluatorOptions options;
  options.wide = true;
  EXPECT_EQ(
      eval(constant("x", "f16[]", "1") + constant("y", "f16[]", "3") +
               "%q = stablehlo.divide(%x, %y) : f16[]\n%p = stablehlo.multiply(%q, %y) : f16[]\n"
               "%r = stablehlo.compare(%p, %x) {comparison_direction = EQ} : pred[]",
           "%r", "pred[]", options),
      "true");
  EXPECT_EQ(
      eval(constant("x", "f32[3]", "[3, nan, -0.0]") +
               fmt::format(
                   "%r = stablehlo.sort(%x) {{dimension = 0}} ({}) : f32[3]",
                   compare_region("comparison_direction = LT, compare_type = TOTALORDER", "f32[]")),
           "%r", "f32[3]", options),
      "[-0, 3, nan]");
}

// --- Limits

TEST(Limits, Depth) {
  std::string text = "func.func @main() { call @f0() : () -> () return }\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("func.func private @f{}() {{ call @f{}() : () -> () return }}\n", i, i + 1);
  const auto module = read(text + "func.func private @f20() { return }");
  EvaluatorOptions options;
  EXPECT_TRUE(Evaluator(*module, options).run(*module->entry(), std::vector<Literal>{}));
  options.max_depth = 5;
  Evaluator evaluator(*module, options);
  const auto error = evaluator.run(*module->entry(), std::vector<Literal>{});
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(error.error().message(), "calls and regions are nested deeper than 5 levels");
  // The evaluator can be used again afterwards.
  EXPECT_TRUE(evaluator.run(*module->find_function("f20"), std::vector<Literal>{}));
}

TEST(Limits, ArrayBytes) {
  EvaluatorOptions options;
  options.max_array_bytes = 1 << 20;
  EXPECT_EQ(eval("%r = stablehlo.iota() {iota_dimension = 0} : f32[131073]", "%r", "f32[131073]",
                 options),
            "t:2:6: error: an array of f32[131073] needs more than the 1 MiB allowed");
  EXPECT_NE(
      eval("%r = stablehlo.iota() {iota_dimension = 0} : f32[131072]", "%r", "f32[131072]", options)
          .substr(0, 2),
      "t:");
}

TEST(Limits, Cancelling) {
  EvaluatorOptions options;
  options.progress = [](int64_t) { return false; };
  std::string body;
  for (int i = 0; i < 100; ++i) body += constant(fmt::format("x{}", i), "s32[]", "1");
  const auto result = testing::run(body, "%x0", "s32[]", options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(result.error().message(), "cancelled after 64 instructions");
}

TEST(Limits, AnEndlessLoopCanBeCancelled) {
  EvaluatorOptions options;
  int calls = 0;
  options.progress = [&](int64_t) { return ++calls < 3; };
  const std::string error =
      eval(constant("p", "pred[]", "true") +
               "stablehlo.while() ({\nstablehlo.return(%p)\n}, {\nstablehlo.return()\n})",
           "%p", "pred[]", options);
  EXPECT_NE(error.find("cancelled after "), std::string::npos) << error;
}

// --- Custom calls

TEST(CustomCall, AnUnknownTargetIsNamedAtItsPlace) {
  EXPECT_EQ(eval("%r = stablehlo.custom_call() {call_target_name = \"my_target\"} : s32[]", "%r",
                 "s32[]"),
            "t:2:6: error: stablehlo.custom_call: target @my_target is unknown to this device");
}

TEST(CustomCall, AHandlerAnswers) {
  const auto module = read(
      "func.func @main(%x: tensor<i32>) -> tensor<i32> {\n"
      "%0 = stablehlo.custom_call @id(%x) : (tensor<i32>) -> tensor<i32>\nreturn %0 : tensor<i32> "
      "}");
  Evaluator evaluator(*module);
  evaluator.set_custom_call(
      "id", [](Evaluator&, const Instruction&, const std::vector<EvalValue>& operands) {
        return Evaluator::Values(operands);
      });
  EXPECT_EQ((*evaluator.run(*module->entry(), std::vector<Literal>{Literal::scalar(kS32, 5)}))[0]
                .get_integer(0),
            5);
}

TEST(CustomCall, AnAnswerOfAnotherTypeIsRefused) {
  const auto module = read(
      "func.func @main(%x: tensor<i32>) -> tensor<f32> {\n"
      "%0 = stablehlo.custom_call @odd(%x) : (tensor<i32>) -> tensor<f32>\nreturn %0 : tensor<f32> "
      "}");
  const auto error_of = [&](std::vector<EvalValue> answer) {
    Evaluator evaluator(*module);
    evaluator.set_custom_call("odd",
                              [&](Evaluator&, const Instruction&, const std::vector<EvalValue>&) {
                                return Evaluator::Values(answer);
                              });
    const auto results =
        evaluator.run(*module->entry(), std::vector<Literal>{Literal::scalar(kS32, 5)});
    return results ? "" : results.error().message();
  };
  EXPECT_EQ(error_of({EvalValue::of(Tensor(kF32, {}, false))}), "");
  EXPECT_EQ(error_of({}), "custom call @odd gave 0 results, expected 1");
  EXPECT_EQ(error_of({EvalValue::of(Tensor(kS32, {}, false))}),
            "custom call @odd gave s32[] as result 0, expected f32[]");
  EXPECT_EQ(error_of({EvalValue::of(Tensor(kF32, {2}, false))}),
            "custom call @odd gave f32[2] as result 0, expected f32[]");
  EXPECT_EQ(error_of({EvalValue()}), "custom call @odd gave no array as result 0, expected f32[]");
}

struct Outcome {
  int64_t checks = 0;
  std::vector<CheckFailure> failures;
  std::string error;
};
Outcome run_checks(std::string_view body) {
  const auto module = read(fmt::format("func.func @main() {{\n{}\nreturn\n}}", body));
  Evaluator evaluator(*module);
  Outcome outcome;
  install_checks(evaluator, &outcome.failures, &outcome.checks);
  const auto results = evaluator.run(*module->entry(), std::vector<Literal>{});
  if (!results) outcome.error = results.error().to_string();
  return outcome;
}

TEST(Checks, FailuresAreCollectedWithTheirPlace) {
  const Outcome outcome = run_checks(
      "%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
      "check.expect_eq_const %0, dense<[1.0, 2.0]> : tensor<2xf32>\n"
      "check.expect_eq_const %0, dense<[1.0, 3.0]> : tensor<2xf32>\n"
      "check.expect_almost_eq_const %0, dense<[1.0, 2.0005]> : tensor<2xf32>\n"
      "check.expect_almost_eq_const %0, dense<[1.0, 2.01]> : tensor<2xf32>");
  EXPECT_EQ(outcome.checks, 4);
  ASSERT_EQ(outcome.failures.size(), 2u);
  EXPECT_EQ(outcome.failures[0].text, "check.expect_eq: element [1] is 2, expected 3");
  EXPECT_EQ(outcome.failures[0].position, (SourcePosition{"t", 4, 1}));
  EXPECT_EQ(outcome.failures[1].text, "check.expect_almost_eq: element [1] is 2, expected 2.01");
}

TEST(Checks, UlpDistance) {
  EXPECT_EQ(ulp_distance(kF32, 1, 1 + 0x1p-23), 1);
  EXPECT_EQ(ulp_distance(kF32, 0.0, -0.0), 0);
  EXPECT_EQ(ulp_distance(kF32, 0x1p-149, -0x1p-149), 2);
  EXPECT_EQ(ulp_distance(kF32, 1, NAN), -1);
  EXPECT_EQ(ulp_distance(kF32, HUGE_VAL, 1), -1);
  EXPECT_EQ(ulp_distance(kBF16, 1, 1.0078125), 1);
}

TEST(Checks, Rules) {
  const auto holds = [](const char* target, const Dict& config, double actual, double expected) {
    std::string why;
    return check_holds(target, config, Literal::scalar(kF32, actual),
                       Literal::scalar(kF32, expected), &why)
               ? ""
               : why;
  };
  const Dict ulps{{"max_ulp_difference", Attribute(int64_t{1})}};
  const Dict least{{"max_ulp_difference", Attribute(int64_t{9})},
                   {"min_ulp_difference", Attribute(int64_t{2})}};
  EXPECT_EQ(holds("check.expect_close", ulps, 1, 1 + 0x1p-23), "");
  EXPECT_EQ(holds("check.expect_close", ulps, 1, 1 + 0x1p-22),
            "check.expect_close: element [] is 1, expected 1.0000002 (2 ULP apart, 1 allowed)");
  EXPECT_EQ(holds("check.expect_close", least, 1, 1 + 0x1p-23),
            "check.expect_close: values are at most 1 ULP apart, at least 2 expected");
  EXPECT_EQ(holds("check.expect_close", ulps, NAN, NAN), "");
  EXPECT_EQ(holds("check.expect_close", ulps, HUGE_VAL, -HUGE_VAL),
            "check.expect_close: element [] is inf, expected -inf");
  EXPECT_EQ(holds("check.expect_eq", {}, 0.0, -0.0), "");
  EXPECT_EQ(holds("check.expect_almost_eq", {{"tolerance", FloatAttr::of(kF64, 0.5)}}, 1, 1.4), "");
  std::string why;
  EXPECT_FALSE(check_holds("check.expect_eq", {}, Literal(Shape(kF32, {2})),
                           Literal(Shape(kF32, {3})), &why));
  EXPECT_EQ(why, "check.expect_eq: shape f32[2], expected f32[3]");
}

TEST(Checks, WrongUse) {
  EXPECT_EQ(
      run_checks("stablehlo.custom_call @check.expect_eq() {has_side_effect = true} : () -> ()")
          .error,
      "t:2:1: error: custom_call @check.expect_eq: expected two arrays");
}

TEST(Checks, ProbesAreKeptByName) {
  const Outcome good = run_checks(
      "%0 = stablehlo.constant dense<1> : tensor<i32>\n"
      "%1 = interpreter.probe %0, probe_id = \"p\" : tensor<i32>\n"
      "check.expect_serialized_eq %1, probe_id = \"p\" : tensor<i32>\n"
      "check.expect_serialized_eq %1, probe_id = \"q\" : tensor<i32>");
  ASSERT_EQ(good.failures.size(), 1u) << good.error;
  EXPECT_EQ(good.failures[0].text,
            "check.expect_serialized_eq: probe \"q\" has kept 0 values, none for iter 0");
}

TEST(Checks, ShapeAssertions) {
  const auto assertion = [](const char* holds, const char* message) {
    return run_checks(fmt::format("%0 = stablehlo.constant dense<{}> : tensor<i1>\n%1 = "
                                  "stablehlo.constant dense<7> : tensor<i32>\n"
                                  "stablehlo.custom_call @shape_assertion(%0, %1) {{{}, "
                                  "has_side_effect = true}} : (tensor<i1>, tensor<i32>) -> ()",
                                  holds, message))
        .error;
  };
  EXPECT_EQ(assertion("true", "error_message = \"no\""), "");
  EXPECT_EQ(assertion("false", "error_message = \"size {0} is odd, {0} too\""),
            "t:4:1: error: size 7 is odd, 7 too");
  EXPECT_EQ(assertion("false", "k"), "t:4:1: error: a shape assertion does not hold");
}

}  // namespace
}  // namespace tenon::hlo
