#include "conformance/generate/inputs.h"

#include <gtest/gtest.h>

#include "core/backend/interpreter/interpreter.h"
#include "hlo/driver/run.h"
#include "hlo/import/import.h"

namespace tenon::conformance {
namespace {

constexpr std::string_view kProgram = R"(
func.func @main(%scale: tensor<f32>) -> tensor<2xf32> {
  %x = func.call @inputs() : () -> tensor<2xf32>
  %expected = stablehlo.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %shape = stablehlo.constant dense<[2]> : tensor<1xi64>
  %scales = stablehlo.dynamic_broadcast_in_dim %scale, %shape, dims = []
      : (tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
  %y = stablehlo.multiply %x, %scales : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%y, %expected) {has_side_effect = true}
      : (tensor<2xf32>, tensor<2xf32>) -> ()
  return %y : tensor<2xf32>
}
func.func private @inputs() -> tensor<2xf32> {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %x : tensor<2xf32>
}
)";

std::unique_ptr<hlo::Module> program() { return hlo::import_module(kProgram, "inputs").value(); }

// Constants that ops compute with become parameters; expected values and sizes stay constants.
TEST(Inputs, OnlyWhatOpsComputeWithBecomesAnArgument) {
  const auto made = inputs_as_arguments(*program());
  ASSERT_TRUE(made) << made.error().to_string();
  ASSERT_EQ(made->inputs.size(), 1U);
  EXPECT_EQ(made->inputs[0].get_double(1), 2.0);
  EXPECT_EQ(made->module->entry()->parameter_count(), 2U);
}

// A test counts the steps that the device ran: none for a program that the passes fold, some if its
// inputs are arguments.
TEST(Inputs, StepsOnTheDeviceAreCounted) {
  const auto client = runtime::Client::open(backend::make_interpreter_backend({})).value();
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
  const auto steps_of = [&](const hlo::Module& module, const std::vector<Literal>& arguments) {
    hlo::RunInfo info;
    const auto results = hlo::run_on_device({client, 0}, module, arguments,
                                            hlo::Checks(&failures, &checks), {}, &info);
    EXPECT_TRUE(results) << results.error().to_string();
    return info.steps;
  };
  const Literal scale = Literal::scalar(ElementType::kF32, 2.0);
  const auto as_arguments = inputs_as_arguments(*program()).value();
  const program::StepCounts run =
      steps_of(*as_arguments.module, {scale, as_arguments.inputs.front()});
  EXPECT_GT(run.on_device(), 0);
  EXPECT_EQ(run.host, 1);  // The check.

  std::string text(kProgram);
  text.replace(text.find("%scale: tensor<f32>"), 19, "");
  text.replace(text.find("%expected ="), 0,
               "%scale = stablehlo.constant dense<2.0> : tensor<f32>\n");
  const auto folded = hlo::import_module(text, "folded").value();
  EXPECT_EQ(steps_of(*folded, {}).on_device(), 0);
  EXPECT_EQ(checks, 2);
  EXPECT_TRUE(failures.empty());
}

}  // namespace
}  // namespace tenon::conformance
