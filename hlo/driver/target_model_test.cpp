// The cost model of a target, and the schedules chosen with it.
#include "hlo/driver/target_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/backend/interpreter/interpreter.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"

namespace tenon::hlo {
namespace {

// The kernels of a sum of `leaves` leaves for each of `results`, along the minor dimension.
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
  EXPECT_EQ(model.lane_private_bytes, 0);
  EXPECT_EQ(model.busy_lanes, 1);  // A CPU runs one lane a unit.
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
  EXPECT_EQ(model.lane_private_bytes, 1024);
  EXPECT_EQ(model.fused_inputs, 7);
  EXPECT_EQ(model.few_results, 200);
  EXPECT_EQ(model.busy_lanes, 400 * 64);
  EXPECT_EQ(model.row_block_bytes, 400 * 64 * 4096);
  EXPECT_EQ(model.long_reduction, 6250);
  EXPECT_DOUBLE_EQ(model.seconds(1e6, 1), 1e-5 + 1e-6);
  EXPECT_DOUBLE_EQ(model.seconds(1, 1e8), 1e-5 + 1e-5);
}

TEST(CostModel, LeavesAttentionAloneWhereItsScheduleWould) {
  backend::TargetInfo target;
  const int64_t usual = lower::CostModel().attention_scores;
  EXPECT_EQ(cost_model_of(target).attention_scores, usual);
  target.scratch_bytes = 4096;
  EXPECT_GT(cost_model_of(target).attention_scores, usual);
  target = {};
  target.features.fma = false;
  EXPECT_GT(cost_model_of(target).attention_scores, usual);
}

TEST(CostModel, SharesShortRowsWhereAWorkgroupBecomesVectors) {
  backend::TargetInfo target;
  target.features.tiles = true;
  target.vector_bytes = 32;
  target.preferred_lanes = 1;
  EXPECT_EQ(cost_model_of(target).shared_row, 8);
  EXPECT_EQ(cost_model_of(target).shared_row_and_more, 32);
  EXPECT_EQ(cost_model_of(target).shared_leaves, 64);
  EXPECT_EQ(cost_model_of(target).short_columns, 128);
  EXPECT_EQ(cost_model_of(target).few_columns, 16);
  target.preferred_lanes = 32;
  EXPECT_EQ(cost_model_of(target).shared_row, 64);
  EXPECT_EQ(cost_model_of(target).short_columns, 0);
  target.preferred_lanes = 1;
  target.features.tiles = false;
  EXPECT_EQ(cost_model_of(target).shared_row, 64);
}

// A target's largest numbers cause no overflow.
TEST(CostModel, TakesAnyTarget) {
  backend::TargetInfo target;
  for (auto member : {&backend::TargetInfo::compute_units, &backend::TargetInfo::preferred_lanes,
                      &backend::TargetInfo::most_lanes, &backend::TargetInfo::private_bytes,
                      &backend::TargetInfo::most_parameters, &backend::TargetInfo::vector_bytes}) {
    target.*member = std::numeric_limits<int64_t>::max();
  }
  target.launch_seconds = target.bytes_per_second = std::numeric_limits<double>::max();
  const lower::CostModel model = cost_model_of(target);
  EXPECT_GT(model.long_reduction, 0);
  EXPECT_GT(model.few_results, 0);
  EXPECT_EQ(kernels_of_sum(6, 70, target), kShared);
}

TEST(CostModel, DecidesAmongSchedules) {
  const backend::TargetInfo usual;
  EXPECT_EQ(kernels_of_sum(6, 63, usual), kElements);
  EXPECT_EQ(kernels_of_sum(6, 64, usual), kShared);
  EXPECT_EQ(kernels_of_sum(1, (1 << 15) - 1, usual), kShared);
  EXPECT_EQ(kernels_of_sum(1, 1 << 15, usual), kStages);
  EXPECT_EQ(kernels_of_sum(65, 1 << 15, usual), kShared);
  // If launches take no time, two stages pay earlier.
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
  // A call's workspace is a part of the block of temporaries.
  runtime::CompiledProgram compiled;
  compiled.program.temporary_bytes = 20;
  EXPECT_TRUE(check_sizes(compiled, target).ok());
  compiled.plans[0].workspace_bytes = 12;
  EXPECT_EQ(check_sizes(compiled, target).message(),
            "the block of temporaries takes 32 bytes, the largest buffer of small has 31");
  compiled.plans[0] = {};
  compiled.plans[0].packed_bytes = {0, 40};
  EXPECT_EQ(check_sizes(compiled, target).message(),
            "a packed constant takes 40 bytes, the largest buffer of small has 31");
}

// A product of 64 x 64 x 64 is tiled if a lane's accumulators and the lanes fit.
TEST(TargetModel, TilesFitLanesAndTheirPrivateMemory) {
  const auto module = import_module(
      "func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
      "  %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
      "tensor<64x64xf32>) -> tensor<64x64xf32>\n  return %d : tensor<64x64xf32>\n}",
      "dot");
  const auto backend = backend::make_interpreter_backend();
  const auto kernel_of = [&](const backend::TargetInfo& target) {
    return compile(**module, *backend, target)->compiled.program.kernels[0];
  };
  backend::TargetInfo target = backend->devices().value()[0].target;
  target.preferred_lanes = 32;
  target.private_bytes = 64;
  EXPECT_EQ(kernel_of(target).name, "dot_general_tiles");
  target.private_bytes = 63;
  EXPECT_EQ(kernel_of(target).name, "dot_general");
  target.private_bytes = 0;
  target.most_lanes = 64;
  const kernel::Kernel few = kernel_of(target);
  EXPECT_EQ(few.name, "dot_general_tiles");
  const auto sums = std::ranges::find(few.memories, "acc", &kernel::Memory::name);
  ASSERT_NE(sums, few.memories.end());
  EXPECT_EQ(sums->dims[0] * sums->dims[1], 64);
}

TEST(Tuning, OfTheMakerIsTakenAndTheCallersComesFirst) {
  backend::TargetInfo target;
  target.tuning = {{"two-stage", 1}, {"parts", 7}};
  EXPECT_EQ(kernels_of_sum(6, 70, target), kStages);
  CompileOptions options;
  options.lower.tuning.set("two-stage", 0);
  EXPECT_EQ(kernels_of_sum(6, 70, target, options), kShared);
  // The file beside a plug-in overrides what the plug-in states.
  target.tuning = {{"two-stage", 1}, {"two-stage", 0}};
  EXPECT_EQ(kernels_of_sum(6, 70, target), kShared);
}

TEST(Tuning, LeavesOutWhatItDoesNotKnow) {
  backend::TargetInfo target;
  target.name = "old";
  target.tuning = {{"parts", 1 << 20}, {"stages", 1}, {"two-stage", 1}};
  lower::TuningParameters tuning;
  EXPECT_EQ(apply_tuning(target, tuning),
            (std::vector<std::string>{
                "tuning of device old: tuning parameter parts is 1048576, expected 1 to 65536",
                "tuning of device old: there is no tuning parameter 'stages' (`tenon schedules` "
                "lists them)"}));
  EXPECT_FALSE(tuning.is_set("parts"));
  EXPECT_EQ(kernels_of_sum(6, 70, target), kStages);
}

}  // namespace
}  // namespace tenon::hlo
