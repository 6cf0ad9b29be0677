// The cost model of a target, and the schedules that are chosen by it.
#include "hlo/driver/target_model.h"

#include <gtest/gtest.h>

#include "core/backend/interpreter/interpreter.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::hlo {
namespace {

// The kernels of a sum over `leaves` of each of `results`, by the minor dimension.
std::vector<std::string> kernels_of_sum(int64_t results, int64_t leaves,
                                        const backend::TargetInfo& target,
                                        const CompileOptions& options = {}) {
  const std::string array = fmt::format("tensor<{}x{}xf32>", results, leaves);
  const auto module = import_module(
      fmt::format("func.func @main(%x: {0}) -> tensor<{1}xf32> {{\n"
                  "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = "
                  "[1] : ({0}, tensor<f32>) -> tensor<{1}xf32>\n  return %s : tensor<{1}xf32>\n}}",
                  array, results),
      "sum");
  const auto backend = backend::make_interpreter_backend();
  const auto compiled = compile(**module, *backend, target, options);
  EXPECT_TRUE(compiled) << compiled.error().to_string();
  std::vector<std::string> names;
  if (!compiled) return names;
  for (const kernel::Kernel& kernel : compiled->compiled.program.kernels) {
    names.push_back(kernel.name);
  }
  return names;
}

using Names = std::vector<std::string>;
const Names kShared = {"reduce_rows"};
const Names kStages = {"reduce_parts", "reduce_total"};
const Names kElements = {"reduce"};

TEST(CostModel, DefaultsHoldWhereATargetStatesNothing) {
  const lower::CostModel usual;
  const lower::CostModel model = cost_model_of({});
  EXPECT_EQ(model.lanes, usual.lanes);
  EXPECT_EQ(model.fused_inputs, usual.fused_inputs);
  EXPECT_EQ(model.long_reduction, usual.long_reduction);
  EXPECT_EQ(model.private_bytes, usual.private_bytes);
  EXPECT_EQ(model.seconds(1, 1), usual.seconds(1, 1));
}

TEST(CostModel, ReadsTheTarget) {
  backend::TargetInfo target;
  target.compute_units = 400;
  target.preferred_lanes = 128;
  target.most_lanes = 64;
  target.private_bytes = 1024;
  target.most_parameters = 8;
  target.launch_seconds = 1e-5;
  target.bytes_per_second = 1e12;
  target.flops = 1e13;
  const lower::CostModel model = cost_model_of(target);
  EXPECT_EQ(model.lanes, 64);
  EXPECT_EQ(model.private_bytes, 64 << 10);
  EXPECT_EQ(model.fused_inputs, 7);
  EXPECT_EQ(model.few_results, 200);
  EXPECT_EQ(model.long_reduction, 6250);
  EXPECT_DOUBLE_EQ(model.seconds(1e6, 1), 1e-5 + 1e-6);
  EXPECT_DOUBLE_EQ(model.seconds(1, 1e8), 1e-5 + 1e-5);
}

TEST(CostModel, DecidesAmongSchedules) {
  const backend::TargetInfo usual;
  EXPECT_EQ(kernels_of_sum(6, 63, usual), kElements);
  EXPECT_EQ(kernels_of_sum(6, 64, usual), kShared);
  EXPECT_EQ(kernels_of_sum(1, (1 << 15) - 1, usual), kShared);
  EXPECT_EQ(kernels_of_sum(1, 1 << 15, usual), kStages);
  EXPECT_EQ(kernels_of_sum(65, 1 << 15, usual), kShared);
  // Launches that take no time are worth it earlier.
  backend::TargetInfo quick;
  quick.launch_seconds = 1e-8;
  quick.bytes_per_second = 1e12;
  EXPECT_EQ(kernels_of_sum(1, 1 << 12, quick), kStages);
}

TEST(TargetModel, NoBufferIsLargerThanTheLargest) {
  const auto module = import_module(
      "func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {\n"
      "  %s = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>\n"
      "  return %s : tensor<4xf32>\n}",
      "slice");
  const auto backend = backend::make_interpreter_backend();
  backend::TargetInfo target;
  target.name = "small";
  target.largest_buffer = 64;
  EXPECT_TRUE(compile(**module, *backend, target));
  target.largest_buffer = 31;
  EXPECT_EQ(compile(**module, *backend, target).error().message(),
            "argument 0 takes 32 bytes, the largest buffer of small has 31");
}

TEST(Tuning, OfTheMakerIsTakenAndTheCallersComesFirst) {
  backend::TargetInfo target;
  target.tuning = {{"two-stage", 1}, {"parts", 7}};
  EXPECT_EQ(kernels_of_sum(6, 70, target), kStages);
  CompileOptions options;
  options.lower.tuning.set("two-stage", 0);
  EXPECT_EQ(kernels_of_sum(6, 70, target, options), kShared);
  lower::TuningParameters tuning;
  target.tuning = {{"parts", 1 << 20}};
  EXPECT_EQ(apply_tuning(target, tuning).to_string(),
            "error: tuning of device : tuning parameter parts is 1048576, expected 1 to 65536");
}

}  // namespace
}  // namespace tenon::hlo
