// Programs that lowering once got wrong, on interp against the evaluator.
#include <gtest/gtest.h>

#include <cmath>

#include "hlo/compile/interp.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

// Both devices give the same bytes.
void expect_same(const std::string& text, const std::vector<Literal>& arguments) {
  const auto module = hlo::import_module(text, "t");
  ASSERT_TRUE(module) << module.error().to_string();
  const auto expected = hlo::Evaluator(**module).run(*(*module)->entry(), arguments);
  ASSERT_TRUE(expected) << expected.error().to_string();
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  const auto actual = hlo::run_on_interp(**module, arguments, hlo::Checks(&failures, &checks));
  ASSERT_TRUE(actual) << actual.error().to_string();
  ASSERT_EQ(actual->size(), expected->size());
  for (size_t i = 0; i < actual->size(); ++i) EXPECT_EQ((*actual)[i], (*expected)[i]) << i;
}

// A loop of three trips whose body is `body`, from %a to %b.
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

// Each product inside the sum of the next would be computed again for each of its elements.
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

// What a strided copy says, done by hand, is what its op gives.
TEST(Lowering, StridedCopiesAreTheirOps) {
  Literal x(Shape(ElementType::kS32, {4, 1, 6}));
  for (int64_t i = 0; i < 24; ++i) x.set_integer(i, i * i);
  for (const auto& [op, type] : std::vector<std::pair<std::string, std::string>>{
           {"stablehlo.transpose %x, dims = [2, 0, 1]", "6x4x1"},
           {"stablehlo.slice %x [1:4:2, 0:1, 2:6:3]", "2x1x2"},
           {"stablehlo.reverse %x, dims = [0, 2]", "4x1x6"},
           {"stablehlo.broadcast_in_dim %x, dims = [0, 1, 3]", "4x5x2x6"}}) {
    SCOPED_TRACE(op);
    const bool one_type = op.find("reverse") != std::string::npos;
    const std::string from = one_type ? "" : "(tensor<4x1x6xi32>) -> ";
    const auto module = hlo::import_module(
        "func.func @main(%x: tensor<4x1x6xi32>) -> tensor<" + type + "xi32> {\n%y = " + op + " : " +
            from + "tensor<" + type + "xi32>\nreturn %y : tensor<" + type + "xi32>\n}",
        "t");
    ASSERT_TRUE(module) << module.error().to_string();
    hlo::LowerOptions options;
    options.takes_call = [](const auto&, auto, auto) { return true; };
    const auto program = hlo::compile_to_program(**module, options);
    ASSERT_TRUE(program) << program.error().to_string();
    const auto& call = std::get<program::Call>(program->sequences[0].steps[0].action);
    const auto& copy = std::get<program::StridedCopy>(call.call);
    const auto expected =
        hlo::Evaluator(**module).run(*(*module)->entry(), std::vector<Literal>{x});
    ASSERT_TRUE(expected) << expected.error().to_string();
    const Dims& dims = expected->front().shape().dims();
    for (int64_t i = 0; i < element_count(dims); ++i) {
      int64_t at = copy.start;
      int64_t rest = i;
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) at += rest % dims[d] * copy.strides[d];
      EXPECT_EQ(x.get_integer(at), expected->front().get_integer(i)) << i;
    }
  }
}

// LT orders no NaN: some result, but one, in any order of iterations.
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
      hlo::InterpOptions options;
      options.lower.schedule.set("row_scratch", row_scratch);
      if (seed != 0) options.interpreter.order = kernel::Order::kShuffled;
      options.interpreter.seed = seed;
      auto results =
          hlo::run_on_interp(**module, std::span(&x, 1), hlo::Checks(&failures, &checks), options);
      ASSERT_TRUE(results) << results.error().to_string();
      if (first.empty()) first = *results;
      EXPECT_EQ(results->front(), first.front());
    }
  }
}

}  // namespace
}  // namespace tenon::conformance
