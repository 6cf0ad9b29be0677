// Collectives and host ops that lowering once got wrong; compares interp with the evaluator.
#include <gtest/gtest.h>

#include "hlo/driver/interpreted.h"
#include "hlo/driver/same_test_util.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

// Each evaluates a copy whose regions contain decompositions of their own.
TEST(HostLowering, CollectivesThatUseValuesFromAround) {
  expect_same(R"(func.func @main(%x: tensor<3xi8>, %k: tensor<i8>) -> tensor<3xi8> {
  %y = stablehlo.add %k, %k : tensor<i8>
  %r = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    %s = stablehlo.add %a, %b : tensor<i8>
    %t = stablehlo.add %s, %y : tensor<i8>
    stablehlo.return %t : tensor<i8>
  }) : (tensor<3xi8>) -> tensor<3xi8>
  return %r : tensor<3xi8>
})",
              {Literal::scalar_integer(ElementType::kS8, 5).splat_to(Shape(ElementType::kS8, {3})),
               Literal::scalar_integer(ElementType::kS8, 2)});
}

TEST(HostLowering, CollectivesThatUseTuplesFromAround) {
  expect_same(R"(func.func @main(%x: tensor<3xf32>, %k: tensor<f32>) -> tensor<3xf32> {
  %u = stablehlo.tuple %k, %k : tuple<tensor<f32>, tensor<f32>>
  %y = stablehlo.tuple %u, %k : tuple<tuple<tensor<f32>, tensor<f32>>, tensor<f32>>
  %r = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %i = stablehlo.get_tuple_element %y[0] : (tuple<tuple<tensor<f32>, tensor<f32>>, tensor<f32>>)
        -> tuple<tensor<f32>, tensor<f32>>
    %z = stablehlo.optimization_barrier %i : tuple<tensor<f32>, tensor<f32>>
    %j = stablehlo.get_tuple_element %z[1] : (tuple<tensor<f32>, tensor<f32>>) -> tensor<f32>
    %s = stablehlo.add %a, %b : tensor<f32>
    %t = stablehlo.add %s, %j : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
})",
              {Literal::scalar(ElementType::kF32, 5).splat_to(Shape(ElementType::kF32, {3})),
               Literal::scalar(ElementType::kF32, 2)},
              Needs::kHostSteps);
}

// The results of a program without arguments on interp.
std::vector<std::string> on_interp(const std::string& text) {
  const auto module = hlo::import_module(text, "t");
  if (!module) return {module.error().to_string()};
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  const auto results = hlo::run_interpreted(**module, {}, hlo::Checks(&failures, &checks));
  if (!results) return {results.error().to_string()};
  std::vector<std::string> texts;
  for (const Literal& each : *results) texts.push_back(each.to_string());
  return texts;
}

// Two processes run @p and take different branches: each adds twice with its peer, and uses only
// one of the sums. The names of the functions do not matter.
TEST(HostLowering, CollectivesThatNobodyUsesStillMeet) {
  EXPECT_EQ(on_interp(R"(func.func @tenon_host(%a: tensor<i32>) -> tensor<i32> {
  %r = "stablehlo.all_reduce"(%a) ({
  ^bb0(%u: tensor<i32>, %v: tensor<i32>):
    %t = stablehlo.add %u, %v : tensor<i32>
    stablehlo.return %t : tensor<i32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
      : (tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}
func.func @p() -> tensor<i32> {
  %a = stablehlo.constant dense<1> : tensor<i32>
  %b = stablehlo.constant dense<10> : tensor<i32>
  %id = stablehlo.partition_id : tensor<ui32>
  %zero = stablehlo.constant dense<0> : tensor<ui32>
  %first = stablehlo.compare EQ, %id, %zero : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %r = "stablehlo.if"(%first) ({
    %x = func.call @tenon_host(%a) : (tensor<i32>) -> tensor<i32>
    %y = func.call @tenon_host(%b) : (tensor<i32>) -> tensor<i32>
    stablehlo.return %x : tensor<i32>
  }, {
    %x = func.call @tenon_host(%a) : (tensor<i32>) -> tensor<i32>
    %y = func.call @tenon_host(%b) : (tensor<i32>) -> tensor<i32>
    stablehlo.return %y : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %r : tensor<i32>
}
func.func @main() -> (tensor<i32>, tensor<i32>) {
  %r:2 = "interpreter.run_parallel"() {programs = [[@p, @p]]} : () -> (tensor<i32>, tensor<i32>)
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
})"),
            (std::vector<std::string>{"2", "20"}));
}

TEST(HostLowering, ProgramsCannotCallTheHost) {
  const std::vector<std::string> texts = on_interp(R"(func.func @main() -> tensor<i32> {
  %r = stablehlo.custom_call @tenon.host() {backend_config = {module = "", function = "f"},
      api_version = 4 : i32} : () -> tensor<i32>
  return %r : tensor<i32>
})");
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_NE(texts[0].find("a target that is the compiler's own"), std::string::npos) << texts[0];
}

}  // namespace
}  // namespace tenon::conformance
