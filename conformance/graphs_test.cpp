// Random programs on `interp` against the evaluator.
//
//   graphs_test [--seed=N] [--count=N] [--size=N]     a failure is reduced and printed as .mlir,
//   with
//                                                     the command that repeats it
//
// The order of iterations and the choices of lowering are drawn from each program's seed.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "conformance/generator.h"
#include "conformance/reducer.h"
#include "hlo/compile/interp.h"
#include "hlo/inference/verify.h"
#include "hlo/text/printer.h"

namespace tenon::conformance {
namespace {

struct Options {
  uint64_t seed = 1;
  int64_t count = 500;
  int size = 20;
};

bool read_option(std::string_view text, std::string_view name, int64_t* value) {
  if (!text.starts_with(name)) return false;
  *value = std::strtoll(text.data() + name.size(), nullptr, 10);
  return true;
}

Device interp(uint64_t seed) {
  return [seed](const hlo::Module& module,
                const std::vector<Literal>& arguments) -> Result<std::vector<Literal>> {
    hlo::InterpOptions options;
    options.interpreter.order = static_cast<kernel::Order>(seed % 3);
    options.interpreter.seed = seed;
    if (seed % 2 == 1) options.lower.schedule = hlo::lower::Schedule::random(seed);
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    return hlo::run_on_interp(module, arguments, hlo::Checks(&failures, &checks), options);
  };
}

// Whether the program of `seed` passes.
bool check(uint64_t seed, int size, int64_t* ops) {
  GeneratorOptions options;
  options.seed = seed;
  options.size = size;
  Failure failure;
  failure.module = generate(options);
  if (const Status status = hlo::verify(*failure.module); !status.ok()) {
    fmt::print("FAIL seed {}: what was generated does not verify: {}\n", seed, status.to_string());
    return false;
  }
  for (const hlo::Instruction& op : *failure.module->entry()) {
    static_cast<void>(op);
    ++*ops;
  }
  failure.arguments = generate_arguments(*failure.module, seed);
  const Device device = interp(seed);
  if (!compare(*failure.module, failure.arguments, device)) return true;
  const Failure reduced = reduce(std::move(failure), device);
  fmt::print("FAIL seed {}: {}\n{}// build/conformance/graphs_test --seed={} --count=1 --size={}\n",
             seed, reduced.text, to_mlir(reduced), seed, size);
  return false;
}

int run(const Options& options) {
  int64_t failed = 0;
  int64_t ops = 0;
  for (int64_t i = 0; i < options.count && failed < 20; ++i) {
    if (!check(options.seed + static_cast<uint64_t>(i), options.size, &ops)) ++failed;
  }
  if (failed == 0) fmt::print("PASS {} random programs of {} ops\n", options.count, ops);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  tenon::conformance::Options options;
  for (int i = 1; i < argc; ++i) {
    int64_t number = 0;
    if (tenon::conformance::read_option(argv[i], "--seed=", &number)) {
      options.seed = static_cast<uint64_t>(number);
    } else if (tenon::conformance::read_option(argv[i], "--count=", &number)) {
      options.count = number;
    } else if (tenon::conformance::read_option(argv[i], "--size=", &number)) {
      options.size = static_cast<int>(number);
    }
  }
  return run(options);
}
