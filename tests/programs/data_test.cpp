// clang-format off
// The StableHLO test data: real programs with expected results, in the folder that the environment
// variable TENON_STABLEHLO_DATA names. One test per file and suite:
//
//   Static, Quantized, Interpret   the program runs on the reference device and its checks hold
//   Interp                         the same on `interp`: lowered, kernels interpreted
//   InterpLegal                    the same, for a target that has only f32, fma and 32-bit integers
//   InterpLeast                    the same without fma: slow, only if TENON_FULL is set
//   InterpShuffled, InterpSchedule the same, iterations in other orders, choices of lowering drawn;
//                                  twice more on every 4th file, on all if TENON_FULL
//
// The following compile the program as users do. Its inputs are arguments, so that the passes cannot
// evaluate it; a test whose device ran no step is skipped, not passed:
//
//   InterpDevice, Cpu, GpuSim, Template
//                                  on these devices, for the template no source with a double
//   GpuSimOptimized                behind LLVM's passes for GPUs; every 4th file, all if TENON_FULL
//   …Plugin, TemplateC             as plug-ins, TemplateC in C; every 8th file, all if TENON_FULL
//   …Layers                        with rules checked, calls delayed; every 4th file for interp and
//                                  cpu, every 8th for the others, all if TENON_FULL
//   GivenPlugin                    the same on the plug-in that TENON_TEST_PLUGIN names by its path
//   CpuFolded                      as written: the passes fold correctly, even if no op is left
//   RoundTrip                      parse(print(m)) == m in both text forms
//   Artifact                       the artifact imports to the same Module as its text
//
// testdata/dynamic is checked by tests/cli/dynamic_test.py, which writes sizes into texts.
// clang-format on
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>

#include "backends/cpu/cpu.h"
#include "backends/gpu/gpu.h"
#include "backends/template/template.h"
#include "conformance/compare/differential.h"
#include "conformance/generate/inputs.h"
#include "core/backend/interpreter/interpreter.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/layers.h"
#include "core/backend/registry/registry.h"
#include "core/base/file.h"
#include "core/base/process/full_test_util.h"
#include "hlo/driver/interpreted.h"
#include "hlo/driver/run.h"
#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/processes/run_parallel.h"
#include "hlo/import/import.h"
#include "hlo/text/printer.h"

namespace tenon::hlo {
namespace {

namespace fs = std::filesystem;

std::string data_folder() {
  const char* folder = std::getenv("TENON_STABLEHLO_DATA");
  return folder ? folder : "";
}

std::vector<std::string> files_in(const std::string& folder, std::string_view ending) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (entry.is_regular_file() && path.ends_with(ending)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Parts between lines "// -----".
std::vector<std::string> programs_of(const std::string& path) {
  const auto bytes = read_file(path);
  std::vector<std::string> parts(1);
  if (!bytes) return parts;
  std::string_view rest = *bytes;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    if (rest.substr(0, end).starts_with("// -----")) {
      parts.emplace_back();
    } else {
      parts.back() += rest.substr(0, end);
    }
    rest.remove_prefix(end);
  }
  std::erase_if(parts,
                [](const std::string& part) { return part.find("func") == std::string::npos; });
  return parts;
}

// The outcome of a run: failed checks, and which steps ran where.
struct Report {
  std::vector<CheckFailure> failures;
  int64_t checks = 0;
  program::StepCounts steps;
};

// Runs `entry` on a device.
using Runner = std::function<Result<std::vector<Literal>>(
    const Module& module, const Computation& entry, const std::vector<Literal>& arguments,
    Report* report)>;

Result<std::vector<Literal>> run_reference(const Module& module, const Computation& entry,
                                           const std::vector<Literal>& arguments, Report* report) {
  Evaluator evaluator(module);
  install_checks(evaluator, &report->failures, &report->checks);
  install_run_parallel(evaluator);
  return evaluator.run(entry, arguments);
}

// Lowers without the optimising passes, so that nothing is folded.
Runner on_interp(const InterpretedRunOptions& options) {
  return [options](const Module& module, const Computation& entry,
                   const std::vector<Literal>& arguments, Report* report) {
    InterpretedRunOptions mine = options;
    mine.lower.entry = entry.name();
    mine.steps = &report->steps;
    return run_interpreted(module, arguments, Checks(&report->failures, &report->checks), mine);
  };
}

// Through the runtime, on a backend's device.
Runner on_device(std::shared_ptr<runtime::Client> client) {
  return [client = std::move(client)](const Module& module, const Computation& entry,
                                      const std::vector<Literal>& arguments, Report* report) {
    CompileOptions options;
    options.lower.entry = entry.name();
    options.strict = true;
    RunInfo info;
    auto results = run_on_device({client, 0}, module, arguments,
                                 Checks(&report->failures, &report->checks), options, &info);
    report->steps += info.steps;
    return results;
  };
}

// Through the runtime, on a backend's first device; the others are for processes that a program
// starts.
Runner on_first(std::shared_ptr<backend::Backend> backend) {
  runtime::ClientOptions first;
  first.devices = {0};
  return on_device(runtime::Client::open(std::move(backend), first).value());
}

// With rules checked, and every eighth call delayed.
std::shared_ptr<backend::Backend> within_layers(std::shared_ptr<backend::Backend> inner) {
  const auto plan = backend::FaultPlan::parse("delay%8");
  return make_faults_layer(backend::make_validate_layer(std::move(inner)), plan.value()).backend;
}

enum class Inputs {
  kAsWritten,    // Constants.
  kAsArguments,  // The device gets them at run time.
};

// Runs one function of a part; the error states why it does not run, or which check failed.
Status run_entry(const Module& module, const Computation& entry, const Runner& runner,
                 std::vector<Literal> arguments, Inputs inputs, Report* report) {
  std::optional<conformance::WithInputs> changed;
  if (inputs == Inputs::kAsArguments) {
    TENON_ASSIGN(changed, conformance::inputs_as_arguments(module, entry.name()));
    arguments.insert(arguments.end(), changed->inputs.begin(), changed->inputs.end());
  }
  const Module& run = changed ? *changed->module : module;
  const Computation& run_entry = changed ? *run.entry() : entry;
  TENON_ASSIGN(std::ignore, runner(run, run_entry, arguments, report));
  if (report->failures.empty()) return {};
  return Status(ErrorCode::kFailedPrecondition, report->failures.front().text);
}

// The first failure of running every part, or nothing.
std::string run_file(const std::string& path, const Runner& runner,
                     const std::vector<Literal>& arguments, Inputs inputs, Report* report) {
  for (const std::string& text : programs_of(path)) {
    const auto module = import_module(text, path);
    if (!module) return module.error().to_string();
    // A part without an entry is a list of test cases, one function each.
    std::vector<const Computation*> entries = {(*module)->entry()};
    if (entries[0] == nullptr) {
      entries.clear();
      for (const auto& function : (*module)->functions()) entries.push_back(function.get());
    }
    for (const Computation* entry : entries) {
      const Status status = run_entry(**module, *entry, runner, arguments, inputs, report);
      if (!status.ok()) return status.to_string();
    }
  }
  return {};
}

// Files whose own bound of 3 ULP is exceeded only because of the order of additions: sums whose
// terms cancel, or sums of f16 rounded at each step. In the order as written they pass; in other
// orders they are counted separately, if each op is within n eps sum|terms| of its evaluation in a
// wider type.
constexpr std::string_view kReassociated[] = {
    "cumlogsumexp_float16_8_9",
    "cumsum_float16_8_9",
    "dot_general_float16_4_3_complex64_3_6",
    "dot_general_float32_4_3_complex64_3_6",
    "dot_general_float64_4_3_complex128_3_6",
    "dot_general_int16_4_3_complex64_3_6",
    "dot_general_int16_4_3_float32_3_6",
    "dot_general_int32_4_3_float32_3_6",
    "dot_general_int64_4_3_complex128_3_6",
    "dot_general_uint16_4_3_complex64_3_6",
    "dot_general_uint16_4_3_float32_3_6",
    "dot_general_uint8_4_3_complex128_3_6",
};

bool is_reassociated(const std::string& path) {
  return std::any_of(std::begin(kReassociated), std::end(kReassociated),
                     [&](std::string_view name) { return path.find(name) != std::string::npos; });
}

// The first op of a file of one program that is outside its bound on the device, or nothing.
std::string mismatch_by_ops(const std::string& path, const Runner& runner,
                            const std::vector<Literal>& arguments) {
  const auto text = read_file(path);
  if (!text) return text.error().to_string();
  const auto module = import_module(*text, path);
  if (!module) return module.error().to_string();
  const auto exposed = conformance::with_all_values_returned(**module);
  if (!exposed) return exposed.error().to_string();
  const conformance::Device device = [&](const Module& program,
                                         const std::vector<Literal>& inputs) {
    Report report;
    return runner(program, *program.entry(), inputs, &report);
  };
  const auto mismatch = conformance::compare(**exposed, arguments, device);
  return mismatch ? mismatch->text : "";
}

// StableHLO's own interpreter does not pass the others either.
bool is_counted(const std::string& path) {
  const auto text = read_file(path);
  return text && text->find("RUN-DISABLED") == std::string::npos;
}

// False for the evaluator.
bool runs_on_device(std::string_view suite) {
  return suite != "Static" && suite != "Quantized" && suite != "Interpret";
}

class RunsRight : public testing::Test {
 public:
  explicit RunsRight(std::string path, Runner runner = run_reference,
                     Inputs inputs = Inputs::kAsWritten)
      : path_(std::move(path)), runner_(std::move(runner)), inputs_(inputs) {}
  void TestBody() override {
    std::vector<Literal> arguments;
    if (path_.ends_with("api_input_arguments.mlir")) {
      // The only file that takes arguments; its first line states which.
      for (const int32_t value : {1, 2}) {
        arguments.push_back(Literal::scalar_integer(ElementType::kS32, value)
                                .splat_to(Shape(ElementType::kS32, {2})));
      }
    }
    Report report;
    const std::string failure = run_file(path_, runner_, arguments, inputs_, &report);
    const std::string suite =
        testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
    if (runs_on_device(suite)) {
      RecordProperty("device_steps", fmt::format("{}", report.steps.on_device()));
    }
    if (!failure.empty() && !is_counted(path_)) {
      RecordProperty("skip_reason", "the data does not count it (RUN-DISABLED)");
      GTEST_SKIP() << "not counted: " << failure;
    }
    if (!failure.empty() && is_reassociated(path_) && suite == "InterpShuffled" &&
        failure.find("check.expect_") != std::string::npos) {
      const std::string outside = mismatch_by_ops(path_, runner_, arguments);
      ASSERT_EQ(outside, "") << failure;
      RecordProperty("skip_reason", "the order of additions");
      GTEST_SKIP() << "counted apart, the order of additions: " << failure;
    }
    ASSERT_EQ(failure, "");
    if (inputs_ == Inputs::kAsArguments && report.steps.on_device() == 0) {
      // It moves or sends arrays and computes nothing, or its results are empty.
      RecordProperty("skip_reason", "the device ran nothing");
      GTEST_SKIP() << "the device ran nothing; the host ran " << report.steps.host << " steps";
    }
  }

 private:
  std::string path_;
  Runner runner_;
  Inputs inputs_;
};

class RoundTrips : public testing::Test {
 public:
  explicit RoundTrips(std::string path) : path_(std::move(path)) {}
  void TestBody() override {
    for (const std::string& text : programs_of(path_)) {
      const auto module = import_module(text, path_);
      ASSERT_TRUE(module) << module.error().to_string();
      for (const TextForm form : {TextForm::kHlo, TextForm::kStableHlo}) {
        const std::string printed = print_module(**module, {form, false});
        const auto again = import_module(printed, "printed");
        ASSERT_TRUE(again) << again.error().to_string() << "\n" << printed.substr(0, 4000);
        std::string why;
        EXPECT_TRUE(equal(**module, **again, &why)) << why << "\n" << printed.substr(0, 4000);
      }
    }
  }

 private:
  std::string path_;
};

class ArtifactEqualsText : public testing::Test {
 public:
  explicit ArtifactEqualsText(std::string path) : path_(std::move(path)) {}
  void TestBody() override {
    const auto artifact = read_file(path_);
    ASSERT_TRUE(artifact);
    const auto module = import_module(*artifact, path_);
    if (path_.find("invalid_vhlo_future") != std::string::npos) {
      ASSERT_FALSE(module);
      EXPECT_NE(module.error().message().find("constant_v99"), std::string::npos)
          << module.error().message();
      EXPECT_NE(module.error().message().find("2.0.0"), std::string::npos);
      return;
    }
    ASSERT_TRUE(module) << module.error().to_string();
    const std::string text_path = path_.substr(0, path_.size() - 3);
    const auto text = read_file(text_path);
    ASSERT_TRUE(text);
    const auto expected = import_module(*text, text_path);
    ASSERT_TRUE(expected) << expected.error().to_string();
    std::string why;
    EXPECT_TRUE(equal(**expected, **module, &why)) << why;
  }

 private:
  std::string path_;
};

template <class Test, class... Args>
void register_files(const char* suite, const std::vector<std::string>& files,
                    const std::string& root, const Args&... args) {
  for (const std::string& path : files) {
    const std::string name = path.substr(root.size() + 1);
    testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [path, args...]() -> testing::Test* { return new Test(path, args...); });
  }
}

// Every N-th file, beginning with the one of that number.
std::vector<std::string> every(size_t n, const std::vector<std::string>& files, size_t first = 0) {
  std::vector<std::string> some;
  for (size_t i = first; i < files.size(); i += n) some.push_back(files[i]);
  return some;
}

InterpretedRunOptions shuffled(uint64_t seed) {
  InterpretedRunOptions options;
  options.interpreter.order = kernel::Order::kShuffled;
  options.interpreter.seed = seed;
  return options;
}

InterpretedRunOptions scheduled(uint64_t seed) {
  InterpretedRunOptions options;
  options.lower.tuning = lower::TuningParameters::random(seed);
  return options;
}

InterpretedRunOptions legalized(std::string_view form) {
  InterpretedRunOptions options;
  options.features = kernel::TargetFeatures::parse(form).value();
  return options;
}

}  // namespace
}  // namespace tenon::hlo

int main(int argc, char** argv) {
  using namespace tenon::hlo;
  testing::InitGoogleTest(&argc, argv);
  const std::string root = data_folder();
  if (root.empty()) {
    fmt::print("TENON_STABLEHLO_DATA is not set\n");
    return 77;
  }
  const std::vector<std::string> text_files = files_in(root + "/testdata", ".mlir");
  const std::vector<std::string> quantized = files_in(root + "/testdata/quantized", ".mlir");
  const std::vector<std::string> dynamic = files_in(root + "/testdata/dynamic", ".mlir");
  std::vector<std::string> interpret = files_in(root + "/interpret", ".mlir");
  const auto chlo = files_in(root + "/interpret/chlo", ".mlir");
  interpret.insert(interpret.end(), chlo.begin(), chlo.end());
  const auto vhlo = files_in(root + "/vhlo", ".mlir.bc");
  std::vector<std::string> vhlo_text;
  for (const std::string& path : vhlo) {
    if (path.find("invalid") == std::string::npos)
      vhlo_text.push_back(path.substr(0, path.size() - 3));
  }
  tenon::backend::InterpreterConfig config;
  config.devices = 33;
  setenv("TENON_CHIPS", "33", 0);
  setenv("TENON_CPU_DEVICES", "33", 0);
  setenv("TENON_GPU_SIM_DEVICES", "33", 0);
  const tenon::backend::GpuSimConfig checked = {33, true};
  const tenon::backend::GpuSimConfig unchecked = {33, false};
  const tenon::backend::GpuSimConfig optimized = {33, false, true};
  setenv("TENON_TEMPLATE_CC", TENON_CC_WITHOUT_DOUBLE, 1);
  const bool full = tenon::tests_take_all();
  const auto plugin = [](const char* path) { return tenon::backend::load_plugin(path).value(); };
  // The device runs every N-th file: all ops are run on each device, and some of them by each path
  // to it.
  struct OnDevice {
    const char* suite;
    Runner runner;
    size_t every = 1;
    Inputs inputs = Inputs::kAsArguments;
  };
  const size_t few = full ? 1 : 16;
  const size_t some = full ? 1 : 8;
  const size_t layered = full ? 1 : 4;
  std::vector<OnDevice> devices = {
      {"InterpDevice", on_first(tenon::backend::make_interpreter_backend(config))},
      {"InterpLayers", on_first(within_layers(tenon::backend::make_interpreter_backend(config))),
       layered},
      {"InterpPlugin", on_first(plugin(TENON_INTERP_PLUGIN)), some},
      {"Cpu", on_first(tenon::backend::make_cpu_backend().value())},
      {"CpuFolded", on_first(tenon::backend::make_cpu_backend().value()), layered,
       Inputs::kAsWritten},
      {"CpuLayers", on_first(within_layers(tenon::backend::make_cpu_backend().value())), layered},
      {"CpuPlugin", on_first(plugin(TENON_CPU_PLUGIN)), some},
      {"GpuSim", on_first(tenon::backend::make_gpu_sim_backend(checked))},
      {"GpuSimOptimized", on_first(tenon::backend::make_gpu_sim_backend(optimized)), some},
      {"GpuSimLayers", on_first(within_layers(tenon::backend::make_gpu_sim_backend(unchecked))),
       some},
      {"GpuSimPlugin", on_first(plugin(TENON_GPU_SIM_PLUGIN)), some},
      {"Template", on_first(tenon::backend::make_template_backend())},
      {"TemplateLayers", on_first(within_layers(tenon::backend::make_template_backend())), few},
      {"TemplatePlugin", on_first(plugin(TENON_TEMPLATE_PLUGIN)), few},
      {"TemplateC", on_first(plugin(TENON_TEMPLATE_C_PLUGIN)), few}};
  if (const char* given = std::getenv("TENON_TEST_PLUGIN"); given != nullptr) {
    const auto backend = tenon::backend::load_plugin(given);
    if (!backend) {
      fmt::print("{}\n", backend.error().to_string());
      return 1;
    }
    devices.push_back({"GivenPlugin", on_first(*backend)});
  }
  register_files<RunsRight>("Static", text_files, root);
  register_files<RunsRight>("Quantized", quantized, root);
  register_files<RunsRight>("Interpret", interpret, root);
  for (const std::vector<std::string>* group :
       std::initializer_list<const std::vector<std::string>*>{&text_files, &quantized,
                                                              &interpret}) {
    register_files<RunsRight>("Interp", *group, root, on_interp({}));
    for (const OnDevice& device : devices) {
      register_files<RunsRight>(device.suite, every(device.every, *group), root, device.runner,
                                device.inputs);
    }
    std::vector<std::string> counted;
    std::copy_if(group->begin(), group->end(), std::back_inserter(counted), is_counted);
    register_files<RunsRight>("InterpLegal", counted, root, on_interp(legalized("fma")));
    if (full) {
      register_files<RunsRight>("InterpLeast", counted, root, on_interp(legalized("least")));
    }
    for (const size_t seed : {1, 2, 3}) {
      const std::vector<std::string> files = full ? *group : every(seed == 1 ? 2 : 8, *group, seed);
      register_files<RunsRight>("InterpShuffled", files, root, on_interp(shuffled(seed)));
      register_files<RunsRight>("InterpSchedule", files, root, on_interp(scheduled(seed)));
    }
  }
  for (const std::vector<std::string>* group :
       std::initializer_list<const std::vector<std::string>*>{&text_files, &quantized, &dynamic,
                                                              &interpret, &vhlo_text}) {
    register_files<RoundTrips>("RoundTrip", *group, root);
  }
  register_files<ArtifactEqualsText>("Artifact", vhlo, root);
  return RUN_ALL_TESTS();
}
