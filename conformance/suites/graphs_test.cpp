// Random programs on `interp`, compared with the evaluator.
//
// A failure is reduced and printed as .mlir, with the command that repeats it. The order of
// iterations, the choices of lowering, fusions and the features for which kernels are legalised
// (for every fifth program) are drawn from each program's seed. After every fourth program, one
// with a loop whose state is updated in place is tested. With --device the programs run there,
// through the runtime, strictly, with rules checked and calls delayed; only the fusions are drawn.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "conformance/compare/reducer.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/random_fusions.h"
#include "conformance/generate/random_loop.h"
#include "conformance/run/progress.h"
#include "conformance/suites/command_line.h"
#include "conformance/suites/devices.h"
#include "core/backend/layers/faults/faults.h"
#include "core/backend/layers/layers.h"
#include "core/base/random.h"
#include "hlo/driver/interpreted.h"
#include "hlo/driver/run.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/import/import.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace tenon::conformance {
namespace {

struct Options {
  uint64_t seed = 1;
  int64_t count = 500;
  int size = 20;
  std::string device;  ///< Absent: the interpreter of Programs.
  std::shared_ptr<backend::Backend> backend;
};

hlo::InterpretedRunOptions options_of(uint64_t seed) {
  hlo::InterpretedRunOptions options;
  options.interpreter.order = static_cast<kernel::Order>(seed % 3);
  options.interpreter.seed = seed;
  if (seed % 2 == 1) options.lower.tuning = hlo::lower::TuningParameters::random(seed);
  if (seed % 7 == 3) {
    options.lower.takes_call = [](const auto&, auto...) { return true; };
  }
  if (seed % 5 == 4) {
    options.features = kernel::TargetFeatures::parse(seed % 2 == 0 ? "least" : "fma").value();
  }
  return options;
}

struct Counts {
  int64_t ops = 0;
  int64_t fusions = 0;
  int64_t loops = 0;
  int64_t steps = 0;  // Number of steps that the device ran.
  int64_t idle = 0;   // Number of runs in which it ran none.

  void add(const program::StepCounts& ran) {
    steps += ran.on_device();
    if (ran.on_device() == 0) ++idle;
  }
};

Device interp(uint64_t seed, Counts* counts) {
  return [seed, counts](const hlo::Module& module,
                        const std::vector<Literal>& arguments) -> Result<std::vector<Literal>> {
    const auto fused = module.clone();
    if (seed % 4 >= 2) counts->fusions += fuse_at_random(*fused, seed);
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    program::StepCounts ran;
    hlo::InterpretedRunOptions options = options_of(seed);
    options.steps = &ran;
    auto results =
        hlo::run_interpreted(*fused, arguments, hlo::Checks(&failures, &checks), options);
    counts->add(ran);
    return results;
  };
}

Device on_backend(const std::shared_ptr<backend::Backend>& backend, uint64_t seed, Counts* counts) {
  return [backend, seed, counts](
             const hlo::Module& module,
             const std::vector<Literal>& arguments) -> Result<std::vector<Literal>> {
    const auto fused = module.clone();
    if (seed % 4 >= 2) counts->fusions += fuse_at_random(*fused, seed);
    auto plan = backend::FaultPlan::parse("delay%8").value();
    plan.seed = seed;
    runtime::ClientOptions first;
    first.devices = {0};
    hlo::RunTarget target;
    const auto layered = make_faults_layer(backend::make_validate_layer(backend), plan);
    TENON_ASSIGN(target.client, runtime::Client::open(layered.backend, first));
    hlo::CompileOptions options;
    options.strict = true;
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    hlo::RunInfo info;
    auto results = hlo::run_on_device(target, *fused, arguments, hlo::Checks(&failures, &checks),
                                      options, &info);
    counts->add(info.steps);
    return results;
  };
}

Device device_of(const Options& options, uint64_t seed, Counts* counts) {
  return options.backend == nullptr ? interp(seed, counts)
                                    : on_backend(options.backend, seed, counts);
}

// Whether the device gives the evaluator's results for `module`, `what` of `seed`, in every bit.
bool has_same_bits(const Options& chosen, uint64_t seed, const hlo::Module& module,
                   std::string_view what, Counts* counts) {
  const std::vector<Literal> arguments = generate_arguments(module, seed);
  const auto expected = hlo::Evaluator(module).run(*module.entry(), arguments);
  const auto actual = device_of(chosen, seed, counts)(module, arguments);
  if (expected && actual && *expected == *actual) return true;
  if (!expected && !actual) return true;
  fmt::print("FAIL seed {}: {}: {}\n{}", seed, what,
             !expected ? expected.error().to_string()
                       : (actual ? "other results" : actual.error().to_string()),
             hlo::print_module(module));
  return false;
}

// A program of integers that returns only some of its values, so that fusions contain others that
// are never stored: every result must have the same bits.
bool check_hidden(const Options& chosen, uint64_t seed, Counts* counts) {
  GeneratorOptions options;
  options.seed = seed;
  options.size = chosen.size;
  options.integers = true;
  const auto module = generate(options);
  hlo::Instruction* end = module->entry()->return_instruction();
  Random random(seed);
  std::vector<hlo::Value> kept;
  std::vector<hlo::Type> types;
  for (const hlo::Value value : end->operands()) {
    if (!random.one_in(3)) continue;
    kept.push_back(value);
    types.push_back(value.type());
  }
  end->set_operands(kept);
  module->entry()->set_declared_result_types(types);
  return has_same_bits(chosen, seed | 2, *module, "a program of integers that hides values",
                       counts);
}

// Whether the program of `seed` passes.
bool check(const Options& chosen, uint64_t seed, Counts* counts) {
  GeneratorOptions options;
  options.seed = seed;
  options.size = chosen.size;
  Failure failure;
  failure.module = generate(options);
  if (const Status status = hlo::verify(*failure.module); !status.ok()) {
    fmt::print("FAIL seed {}: what was generated does not verify: {}\n", seed, status.to_string());
    return false;
  }
  for (const hlo::Instruction& op : *failure.module->entry()) {
    static_cast<void>(op);
    ++counts->ops;
  }
  failure.arguments = generate_arguments(*failure.module, seed);
  const Device device = device_of(chosen, seed, counts);
  if (!compare(*failure.module, failure.arguments, device)) return true;
  const Failure reduced = reduce(std::move(failure), device);
  Counts ignored;
  fmt::print(
      "FAIL seed {}: {} (at fault: {})\n{}// build/conformance/graphs_test --seed={} --count=1 "
      "--size={}{}\n",
      seed, reduced.text, name_of(fault_of(reduced, interp(seed, &ignored))), to_mlir(reduced),
      seed, chosen.size, chosen.device.empty() ? "" : " --device=" + chosen.device);
  return false;
}

bool check_loop(const Options& chosen, uint64_t seed, Counts* counts) {
  const std::string text = random_loop(seed, seed % 8 == 1);
  auto module = hlo::import_module(text, "random_loop");
  if (!module) {
    fmt::print("FAIL seed {}: a loop: {}\n{}", seed, module.error().to_string(), text);
    return false;
  }
  ++counts->loops;
  return has_same_bits(chosen, seed, **module, "a loop", counts);
}

int run(const Options& options) {
  int64_t failed = 0;
  Counts counts;
  SuiteProgress progress("random programs:", options.count);
  for (int64_t i = 0; i < options.count && failed < 20; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    if (!check(options, seed, &counts)) ++failed;
    if (seed % 4 == 1 && !check_loop(options, seed, &counts)) ++failed;
    if (seed % 4 == 3 && !check_hidden(options, seed, &counts)) ++failed;
    progress.done(i + 1, failed == 0 ? "" : fmt::format("{} failed", failed));
  }
  progress.clear();
  if (options.count >= 100 && counts.fusions == 0) {
    fmt::print("FAIL not one fusion was made\n");
    ++failed;
  }
  // A program of few ops may contain none that computes.
  if (counts.idle * 20 > options.count) {
    fmt::print("FAIL in {} of {} programs the device ran nothing\n", counts.idle, options.count);
    ++failed;
  }
  if (failed == 0) {
    fmt::print(
        "PASS {} random programs of {} ops, {} fusions, and {} loops{}: {} steps run there, none "
        "in {} programs\n",
        options.count, counts.ops, counts.fusions, counts.loops,
        options.device.empty() ? "" : " on " + options.device, counts.steps, counts.idle);
  }
  return failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Random programs on a device, against the evaluator.");
  app.add_option("--seed", options.seed, "of the first program")->capture_default_str();
  app.add_option("--count", options.count, "of programs, one a seed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--size", options.size, "ops of a program, about")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option(
      "--device", options.device,
      "name of a device or path of a plug-in; without it: lowered programs, interpreted");
  app.footer("A failing program is reduced and printed. To go on after an interruption: --seed.");
  if (const auto status = parse(app, argc, argv)) return *status;
  if (!options.device.empty()) {
    auto backend = backend_named(options.device);
    if (!backend) {
      fmt::print("FAIL {}: {}\n", options.device, backend.error().to_string());
      return 1;
    }
    options.backend = *std::move(backend);
  }
  return run(options);
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  return tenon::conformance::guarded([&] { return tenon::conformance::run(argc, argv); });
}
