#include <gtest/gtest.h>

#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/registry/tuning_file.h"
#include "core/base/file.h"
#include "hlo/driver/compile.h"
#include "hlo/import/import.h"
#include "hlo/passes/pass.h"
#include "tools/arguments.h"
#include "tools/tune/device_trials.h"
#include "tools/tune/output.h"
#include "tools/tune/tune_programs.h"

namespace tenon::tools {
namespace {

using Clock = DeviceTrials::Clock;

constexpr std::string_view kProduct = R"(
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
})";

std::vector<TunedProgram> product() {
  std::vector<TunedProgram> programs(1);
  programs[0].name = "product";
  programs[0].digest = "1";
  programs[0].entry = "main";
  programs[0].module = *hlo::import_module(kProduct, "product.mlir");
  for (const uint64_t seed : {1, 2}) {
    programs[0].arguments.push_back(random_literal(Shape(ElementType::kF32, {8, 8}), seed));
  }
  return programs;
}

class TuneTest : public ::testing::Test {
 protected:
  std::unique_ptr<DeviceTrials> open(std::shared_ptr<backend::Backend> backend, Tuning own = {}) {
    auto trials = Trials::open(path(), "interp 1", false);
    EXPECT_TRUE(trials) << trials.error().to_string();
    auto target = DeviceTrials::open(std::move(backend), 0, std::move(own), product(),
                                     *std::move(trials), Clock::now() + std::chrono::hours(1));
    EXPECT_TRUE(target) << target.error().to_string();
    return *std::move(target);
  }
  std::string path() const { return folder_->file("trials"); }

  const Result<TemporaryFolder> folder_ = TemporaryFolder::create("tune");
};

TEST_F(TuneTest, MeasuresOnTheDeviceAndKnowsWhatLoweringAskedFor) {
  const auto target = open(backend::make_interpreter_backend());
  const auto seconds = target->seconds(0, {}, true);
  ASSERT_TRUE(seconds);
  EXPECT_GT(*seconds, 0);
  EXPECT_LT(*seconds, 10);
  EXPECT_EQ(target->measured(), 1);
  const auto tiled = target->seconds(0, {{"tiled-dot", 1}, {"tile_k", 4}}, true);
  ASSERT_TRUE(tiled);
  EXPECT_LT(*tiled, 10);
  EXPECT_TRUE(target->asked(0).contains("tile_k"));
  EXPECT_FALSE(target->asked(0).contains("tile_along"));
  EXPECT_TRUE(target->wrong().empty());
}

TEST_F(TuneTest, AnotherRunGoesOnWithTheTrialsOfTheFirst) {
  {
    const auto first = open(backend::make_interpreter_backend());
    ASSERT_TRUE(first->seconds(0, {}, true));
    ASSERT_TRUE(first->seconds(0, {{"tile_k", 4}}, false));
    EXPECT_EQ(first->measured(), 2);
  }
  const auto second = open(backend::make_interpreter_backend());
  ASSERT_TRUE(second->seconds(0, {{"tile_k", 4}}, false));
  EXPECT_EQ(second->measured(), 0);
  ASSERT_TRUE(second->seconds(0, {{"tile_k", 8}}, false));
  EXPECT_EQ(second->measured(), 1);
  // The device states what was found; the trial is known all the same.
  const auto third = open(backend::make_interpreter_backend(), {{"tile_k", 4}});
  ASSERT_TRUE(third->seconds(0, {}, false));
  ASSERT_TRUE(third->seconds(0, {{"tile_k", 8}}, false));
  EXPECT_EQ(third->measured(), 0);
  ASSERT_TRUE(third->seconds(0, {{"parts", 8}}, false));
  EXPECT_EQ(third->measured(), 1);
}

TEST_F(TuneTest, ATrialThatTookTheProcessWithItIsNotRepeated) {
  ASSERT_TRUE(
      write_file(
          path(),
          R"({"device": "interp 1", "program": "product 1", "parameters": {"tile_k": 4}, "outcome": "begun"})"
          "\n{\"device\": \"interp 1\", \"prog")
          .ok());
  const auto target = open(backend::make_interpreter_backend());
  ASSERT_TRUE(target->seconds(0, {}, true));
  for (const bool again : {false, true}) {
    const auto seconds = target->seconds(0, {{"tile_k", 4}}, again);
    ASSERT_TRUE(seconds);
    EXPECT_GT(*seconds, 1e100);
  }
  EXPECT_EQ(target->measured(), 1);
  // The line that was cut off is gone, so that the next process can read the file.
  EXPECT_TRUE(Trials::open(path(), "interp 1", false));
}

TEST_F(TuneTest, AnotherDeviceOrCompilerHasTrialsOfItsOwn) {
  ASSERT_TRUE(open(backend::make_interpreter_backend())->seconds(0, {}, true));
  const auto other = Trials::open(path(), "interp 2", false);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->count(), 0);
  const auto same = Trials::open(path(), "interp 1", false);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->count(), 1);
  const auto fresh = Trials::open(path(), "interp 1", true);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->count(), 0);
}

TEST_F(TuneTest, ALineThatIsNoTrialIsAnErrorWithItsPlace) {
  for (const std::string_view line :
       {"[]", "{", R"({"device": "interp 1"})",
        R"({"device": "interp 1", "outcome": "begun", "parameters": {"a": "b"}})",
        R"({"device": "interp 1", "outcome": "measured", "parameters": {}})"}) {
    ASSERT_TRUE(write_file(path(), fmt::format("{}\n", line)).ok());
    const auto trials = Trials::open(path(), "interp 1", false);
    ASSERT_FALSE(trials) << line;
    EXPECT_NE(trials.error().to_string().find("trials:1"), std::string::npos)
        << trials.error().to_string();
  }
}

// Multiplies in the wrong order with each binary but the first.
class WrongWhenTuned : public backend::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Result<std::unique_ptr<backend::Device>> open(size_t index) override {
    TENON_ASSIGN(auto device, inner().open(index));
    return std::make_unique<WrongDevice>(std::move(device), loads_);
  }

 private:
  class WrongDevice : public backend::ForwardingDevice {
   public:
    WrongDevice(std::unique_ptr<backend::Device> inner, int& loads)
        : ForwardingDevice(std::move(inner)), loads_(loads) {}
    Result<backend::ModuleHandle> load(std::string_view binary, backend::Kernels kernels) override {
      ++loads_;
      return ForwardingDevice::load(binary, kernels);
    }
    Status launch(uint32_t queue, const backend::KernelLaunch& launch) override {
      backend::KernelLaunch wrong = launch;
      std::vector<backend::MemoryAddress> buffers(launch.buffers.begin(), launch.buffers.end());
      if (loads_ > 1 && buffers.size() > 1) std::swap(buffers[0], buffers[1]);
      wrong.buffers = buffers;
      return ForwardingDevice::launch(queue, wrong);
    }

   private:
    int& loads_;
  };
  int loads_ = 0;
};

TEST_F(TuneTest, ParametersWithOtherResultsAreNotMeasured) {
  const auto target = open(std::make_shared<WrongWhenTuned>(backend::make_interpreter_backend()));
  ASSERT_TRUE(target->seconds(0, {}, true));
  const auto seconds = target->seconds(0, {{"tile_k", 4}}, true);
  ASSERT_TRUE(seconds);
  EXPECT_GT(*seconds, 1e100);
  ASSERT_EQ(target->wrong().size(), 1U);
  EXPECT_NE(target->wrong()[0].find("product with tile_k=4"), std::string::npos);
}

TEST_F(TuneTest, TheFileKeepsRatesAndOtherParameters) {
  const std::string file = folder_->file("chip.tuning");
  ASSERT_TRUE(write_file(file, "# by hand\nflops = 1e+09\nparts = 7\ntile_k = 8\n").ok());
  ASSERT_TRUE(write_tuning(file, "# by tune\n", {{"tile_k", 32}, {"each_m", 4}}).ok());
  const auto text = read_file(file);
  ASSERT_TRUE(text);
  const auto parsed = backend::parse_tuning_file(*text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->rates.flops, 1e9);
  EXPECT_EQ(parsed->tuning,
            (std::vector<backend::TuningValue>{{"parts", 7}, {"each_m", 4}, {"tile_k", 32}}));
  EXPECT_TRUE(text->starts_with("# by tune\n"));
  ASSERT_TRUE(write_file(file, "parts\n").ok());
  EXPECT_FALSE(write_tuning(file, "", {}).ok());
}

// Its compiler's messages have several lines.
class Refuses : public backend::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Result<backend::Compiled> compile(const backend::TargetInfo&, backend::Kernels) override {
    return internal_error("refused:\nline 1\nline 2");
  }
};

TEST_F(TuneTest, AReasonOfManyLinesIsOneLineOfTheTable) {
  const auto target = open(std::make_shared<Refuses>(backend::make_interpreter_backend()));
  const auto seconds = target->seconds(0, {}, true);
  ASSERT_TRUE(seconds);
  EXPECT_EQ(*seconds, kNever);
  const std::string table = table_of(*target, {.before = {kNever}, .after = {kNever}}, "# ");
  EXPECT_NE(table.find("refused:"), std::string::npos) << table;
  EXPECT_EQ(std::ranges::count(table, '\n'), 1) << table;
  EXPECT_TRUE(backend::parse_tuning_file(table + "parts = 3\n"));
}

TEST_F(TuneTest, TheFileOfADeviceLiesBesideItsPlugIn) {
  EXPECT_EQ(output_of("/opt/chip/libchip.so:1"), "/opt/chip/libchip.tuning");
  EXPECT_EQ(output_of("interp"), "interp.tuning");
}

TEST_F(TuneTest, TheTableSaysWhyAProgramDoesNotRun) {
  const auto target = open(backend::make_interpreter_backend());
  const std::string table = table_of(*target, {.before = {0.004}, .after = {0.002}}, "# ");
  EXPECT_EQ(table, "# product                      4 ms         2 ms  2.00\n");
  EXPECT_NE(table_of(*target, {.before = {kNever}, .after = {kNever}}, "").find("does not run"),
            std::string::npos);
}

TEST(TunePrograms, AskForEveryParameter) {
  std::set<std::string> asked;
  for (const EmbeddedFile& file : tune_programs()) {
    const auto module = hlo::import_module(file.text, std::string(file.path));
    ASSERT_TRUE(module) << module.error().to_string();
    ASSERT_TRUE(hlo::run_passes(**module, hlo::optimizing_passes()).ok()) << file.path;
    for (const bool many_lanes : {false, true}) {
      hlo::LowerOptions options;
      options.limits.cost.scans = many_lanes;
      options.limits.cost.busy_lanes = many_lanes ? 1 << 15 : 1;
      options.tuning.record_asked(&asked);
      ASSERT_TRUE(hlo::compile_to_program(**module, options)) << file.path;
    }
  }
  for (const auto& parameter : hlo::lower::all_tuning_parameters()) {
    // No program of the list has loops.
    const bool is_left_out = parameter.name == hlo::lower::parameters::kControlInWorkgroup.name;
    EXPECT_NE(asked.contains(std::string(parameter.name)), is_left_out) << parameter.name;
  }
}

}  // namespace
}  // namespace tenon::tools
