// The samples: programs exported from JAX, as text and as artifacts, compared with JAX's results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu.h"
#include "backends/gpu/gpu.h"
#include "backends/template/template.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/forward.h"
#include "core/backend/layers/layers.h"
#include "core/base/file.h"
#include "core/base/process/full_test_util.h"
#include "core/kernel/text/text.h"
#include "core/types/npy.h"
#include "hlo/driver/interpreted.h"
#include "hlo/driver/run.h"
#include "hlo/evaluator/checks.h"
#include "hlo/import/import.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "hlo/text/printer.h"

namespace tenon::hlo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kSamples = TENON_SAMPLES;

std::unique_ptr<Module> load(const std::string& path) {
  const auto bytes = read_file(path);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  if (!bytes) return nullptr;
  auto module = import_module(*bytes, path);
  EXPECT_TRUE(module) << module.error().to_string();
  return module ? std::move(*module) : nullptr;
}

// The artifact of a sample with CHLO ops contains composites and decompositions instead, so its
// Module differs; it must still give the same results.
bool has_chlo(const Module& module) {
  return print_module(module).find("chlo.") != std::string::npos;
}

std::vector<Literal> arguments_of(const Json& manifest, const std::string& folder,
                                  const Computation& entry) {
  std::vector<Literal> arguments;
  for (const Json& input : manifest["inputs"]) {
    const size_t index = arguments.size();
    auto literal = read_npy(folder + "/" + input["file"].get<std::string>(),
                            entry.parameter(index).type().element_type());
    EXPECT_TRUE(literal) << literal.error().to_string();
    arguments.push_back(literal ? std::move(*literal) : Literal());
  }
  return arguments;
}

// Integers exactly, f32 within 1e-5 of the largest magnitude, narrower floats within the manifest's
// tolerance.
void expect_close(const Literal& actual, const Literal& expected, double tolerance,
                  const std::string& where) {
  ASSERT_EQ(actual.shape(), expected.shape()) << where;
  const ElementType part = complex_part(actual.element_type());
  if (!is_float(part)) {
    EXPECT_EQ(actual, expected) << where;
    return;
  }
  double largest = 0;
  double worst = 0;
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const std::complex<double> a = actual.get_complex(i);
    const std::complex<double> b = expected.get_complex(i);
    if (a == b) continue;
    largest = std::max(largest, std::abs(b));
    worst = std::max(worst, std::abs(a - b));
    ASSERT_FALSE(std::isnan(std::abs(a - b))) << where << " element " << i;
  }
  const double allowed = part == ElementType::kF32 ? 1e-5 * largest : tolerance * (1 + largest);
  EXPECT_LE(worst, allowed) << where;
}

// A function that runs a Module on arguments and adds the counts of steps to `steps`.
using Runner = std::function<Result<std::vector<Literal>>(
    const Module& module, std::span<const Literal> arguments, const Checks& checks,
    program::StepCounts& steps)>;

Result<std::vector<Literal>> on_reference(const Module& module, std::span<const Literal> arguments,
                                          const Checks& checks, program::StepCounts&) {
  Evaluator evaluator(module);
  install_checks(evaluator, checks);
  return evaluator.run(*module.entry(), std::vector<Literal>(arguments.begin(), arguments.end()));
}

Runner on_interp(const InterpretedRunOptions& options) {
  return [options](const Module& module, std::span<const Literal> arguments, const Checks& checks,
                   program::StepCounts& steps) {
    InterpretedRunOptions mine = options;
    mine.steps = &steps;
    return run_interpreted(module, arguments, checks, mine);
  };
}

// Through the runtime, without host steps.
Runner on_device(std::shared_ptr<backend::Backend> backend) {
  return [backend = std::move(backend)](
             const Module& module, std::span<const Literal> arguments, const Checks& checks,
             program::StepCounts& steps) -> Result<std::vector<Literal>> {
    runtime::ClientOptions first;
    first.devices = {0};
    RunTarget target;
    TENON_ASSIGN(target.client, runtime::Client::open(backend, first));
    CompileOptions options;
    options.strict = true;
    RunInfo info;
    auto results = run_on_device(target, module, arguments, checks, options, &info);
    steps += info.steps;
    return results;
  };
}

void run_sample(const std::string& folder, const Json& manifest, const std::string& program,
                const Runner& run, bool needs_device = true) {
  std::unique_ptr<Module> module = load(folder + "/" + program);
  ASSERT_NE(module, nullptr);
  const std::vector<Literal> arguments = arguments_of(manifest, folder, *module->entry());
  if (is_dynamic(*module)) {
    ArgumentKnowledge known;
    for (size_t i = 0; i < arguments.size(); ++i) {
      known.shapes.emplace(i, arguments[i].shape().dims());
      if (is_integer(arguments[i].element_type())) known.values.emplace(i, arguments[i]);
    }
    auto refined = refine(*module, known);
    ASSERT_TRUE(refined) << refined.error().to_string();
    module = std::move(*refined);
  }
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  program::StepCounts steps;
  const auto results = run(*module, arguments, Checks(&failures, &checks), steps);
  ASSERT_TRUE(results) << results.error().to_string();
  ASSERT_TRUE(!needs_device || steps.on_device() > 0) << "the device ran nothing";
  ASSERT_EQ(results->size(), manifest["outputs"].size());
  for (size_t i = 0; i < results->size(); ++i) {
    const Json& output = manifest["outputs"][i];
    const auto expected =
        read_npy(folder + "/" + output["file"].get<std::string>(), (*results)[i].element_type());
    ASSERT_TRUE(expected) << expected.error().to_string();
    expect_close((*results)[i], *expected, output.value("tolerance", 0.0),
                 fmt::format("{} result {}", program, i));
  }
}

class Sample : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = kSamples + "/" + GetParam();
    const auto bytes = read_file(folder_ + "/manifest.json");
    ASSERT_TRUE(bytes);
    manifest_ = Json::parse(*bytes);
  }
  std::string folder_;
  Json manifest_;
};

// The samples that have JAX's results.
class SampleResults : public Sample {};

TEST_P(SampleResults, OfText) {
  run_sample(folder_, manifest_, "program.mlir", on_reference, false);
}

TEST_P(SampleResults, OfArtifact) {
  run_sample(folder_, manifest_, "program.mlirbc", on_reference, false);
}

TEST_P(SampleResults, OnInterp) { run_sample(folder_, manifest_, "program.mlir", on_interp({})); }

TEST_P(SampleResults, OnInterpsDevice) {
  run_sample(folder_, manifest_, "program.mlir", on_device(backend::make_interpreter_backend()));
}

// Whether a sample gets the form `number` of `count`: one, which its name picks, or with TENON_FULL
// all of them.
bool has_form(const std::string& sample, size_t number, size_t count) {
  size_t sum = number;
  for (const char each : sample) sum += static_cast<unsigned char>(each);
  return sum % count == 0 || tests_take_all();
}

// On each device by itself, or within the layer that checks the rules.
TEST_P(SampleResults, OnDevices) {
  const std::shared_ptr<backend::Backend> devices[] = {backend::make_cpu_backend(1),
                                                       backend::make_gpu_sim_backend({1, true}),
                                                       backend::make_template_backend()};
  for (size_t d = 0; d < std::size(devices); ++d) {
    SCOPED_TRACE(devices[d]->name());
    if (has_form(GetParam(), d, 2)) {
      run_sample(folder_, manifest_, "program.mlir", on_device(devices[d]));
    }
    if (has_form(GetParam(), d + 1, 2)) {
      run_sample(folder_, manifest_, "program.mlir",
                 on_device(backend::make_validate_layer(devices[d])));
    }
  }
}

TEST_P(SampleResults, OnInterpInAnyOrder) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    if (!has_form(GetParam(), seed, 3)) continue;
    SCOPED_TRACE(seed);
    InterpretedRunOptions options;
    options.interpreter.order = kernel::Order::kShuffled;
    options.interpreter.seed = seed;
    options.lower.tuning = lower::TuningParameters::random(seed);
    run_sample(folder_, manifest_, "program.mlir", on_interp(options));
  }
}

// For a target with f32 and 32-bit integers: with fma, and (only if TENON_FULL is set, because it
// is slow) without.
TEST_P(SampleResults, OnInterpLegalised) {
  for (const char* form : {"fma", "least"}) {
    if (form == std::string_view("least") && !tests_take_all()) continue;
    InterpretedRunOptions options;
    options.features = kernel::TargetFeatures::parse(form).value();
    run_sample(folder_, manifest_, "program.mlir", on_interp(options));
  }
}

// Notes kernels that use memory of a workgroup.
class WatchesScratch final : public backend::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  bool takes_segments() const override { return false; }
  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    for (const kernel::Kernel* each : kernels) {
      ++compiled;
      for (const kernel::Memory& memory : each->memories) {
        EXPECT_NE(memory.space, kernel::Space::kScratch) << kernel::print(*each);
      }
      for (const kernel::Node& node : each->nodes) {
        EXPECT_FALSE(node.op == kernel::OpCode::kReduce && node.over_lanes) << kernel::print(*each);
      }
    }
    return ForwardingBackend::compile(target, kernels);
  }
  int compiled = 0;
};

// The device has no scratch memory, with private memory and without.
TEST_P(SampleResults, WithoutScratch) {
  for (const char* form : {"s64,u64,f64,fma,dimensions,no_scratch",
                           "s64,u64,f64,fma,private_memory,scans,no_scratch"}) {
    backend::InterpreterConfig config;
    config.features = kernel::TargetFeatures::parse(form).value();
    const auto watch = std::make_shared<WatchesScratch>(backend::make_interpreter_backend(config));
    run_sample(folder_, manifest_, "program.mlir", on_device(watch));
    EXPECT_GT(watch->compiled, 0);
  }
}

TEST_P(Sample, TextAndArtifactAreOneModule) {
  const auto text = load(folder_ + "/program.mlir");
  const auto artifact = load(folder_ + "/program.mlirbc");
  ASSERT_TRUE(text && artifact);
  std::string why;
  if (has_chlo(*text)) {
    EXPECT_FALSE(equal(*text, *artifact));
  } else {
    EXPECT_TRUE(equal(*text, *artifact, &why)) << why;
  }
}

TEST_P(Sample, RoundTrips) {
  for (const std::string program : {"program.mlir", "program.mlirbc"}) {
    const auto module = load(folder_ + "/" + program);
    ASSERT_NE(module, nullptr);
    for (const TextForm form : {TextForm::kHlo, TextForm::kStableHlo}) {
      const auto again = import_module(print_module(*module, {form, false}), "printed");
      ASSERT_TRUE(again) << again.error().to_string();
      std::string why;
      EXPECT_TRUE(equal(*module, **again, &why)) << program << ": " << why;
    }
  }
}

std::vector<std::string> sample_names(const std::string& file) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSamples)) {
    if (fs::exists(entry.path() / file)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Sample, testing::ValuesIn(sample_names("manifest.json")),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(All, SampleResults, testing::ValuesIn(sample_names("out_0.npy")),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tenon::hlo
