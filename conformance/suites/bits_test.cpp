// Elementwise programs give the same bits on every device.
//
// Runs each elementwise op on each type's special values (all types, or those of --types), then
// `count` random graphs, on `interp` and, strictly, on each named device (cpu and gpu-sim). A NaN
// equals any other (docs/numerics.md).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "conformance/compare/differential.h"
#include "conformance/generate/elementwise.h"
#include "conformance/run/progress.h"
#include "conformance/suites/command_line.h"
#include "conformance/suites/devices.h"
#include "hlo/driver/run.h"
#include "hlo/text/printer.h"

namespace tenon::conformance {
namespace {

struct Options {
  std::vector<std::string> devices = {"cpu", "gpu-sim"};
  std::vector<std::string> types;
  WithoutOps without;
  int64_t count = 500;
  int64_t seed = 1;
  int64_t size = 14;
  int64_t of_narrow = 1;
};

using Results = Result<std::vector<Literal>>;

class Bits {
 public:
  static Result<Bits> open(const std::vector<std::string>& devices) {
    Bits bits;
    TENON_ASSIGN(bits.interp_, client_of("interp"));
    for (const std::string& name : devices) {
      TENON_ASSIGN(bits.clients_[name], client_of(name));
    }
    return bits;
  }

  // Whether all devices give the bits of interp; if not, prints the difference.
  /// Runs in which the device ran nothing, because the passes computed the results, or these are
  /// empty.
  int64_t idle() const { return idle_; }

  bool check(const ElementwiseProgram& program, const std::string& name) {
    const Results expected = run(interp_, *program.module, program.arguments);
    if (!expected) {
      fmt::print("FAIL {} on interp: {}\n{}", name, expected.error().to_string(),
                 hlo::print_module(*program.module));
      return false;
    }
    bool right = true;
    for (const auto& [device, client] : clients_) {
      const int64_t before = steps_;
      const Results actual = run(client, *program.module, program.arguments);
      const auto difference =
          actual ? first_result(*expected, *actual) : std::optional(actual.error().to_string());
      if (steps_ == before) ++idle_;
      if (!difference) continue;
      right = false;
      fmt::print("FAIL {} on {}: {}\n  {}\n{}", name, device, *difference,
                 op_at_fault(program, client), hlo::print_module(*program.module));
    }
    return right;
  }

 private:
  static Result<std::shared_ptr<runtime::Client>> client_of(const std::string& name) {
    TENON_ASSIGN(auto backend, backend_named(name));
    return first_device(std::move(backend));
  }

  Results run(const std::shared_ptr<runtime::Client>& client, const hlo::Module& module,
              const std::vector<Literal>& arguments) {
    hlo::CompileOptions options;
    options.strict = true;
    std::vector<hlo::CheckFailure> failures;
    int64_t checks = 0;
    hlo::RunInfo info;
    auto results = hlo::run_on_device({client, 0}, module, arguments,
                                      hlo::Checks(&failures, &checks), options, &info);
    steps_ += info.steps.on_device();
    return results;
  }

  static std::optional<std::string> first_result(const std::vector<Literal>& expected,
                                                 const std::vector<Literal>& actual) {
    for (size_t r = 0; r < expected.size(); ++r) {
      const int64_t at = first_difference(expected[r], actual[r]);
      if (at < 0) continue;
      return fmt::format("result {} element {}: {}, expected {}", r, at,
                         actual[r].element_to_string(at), expected[r].element_to_string(at));
    }
    return std::nullopt;
  }

  // The first op whose result differs if every value is a result, with its operands there.
  std::string op_at_fault(const ElementwiseProgram& program,
                          const std::shared_ptr<runtime::Client>& client) {
    const auto exposed = with_all_values_returned(*program.module);
    if (!exposed) return exposed.error().to_string();
    const Results expected = run(interp_, **exposed, program.arguments);
    const Results actual = run(client, **exposed, program.arguments);
    if (!expected || !actual) return "no op by itself";
    // The value of each instruction on interp: parameters, then results in the order of their ops.
    std::map<const hlo::Instruction*, const Literal*> known;
    const hlo::Computation& main = *(*exposed)->entry();
    for (size_t i = 0; i < main.parameter_count(); ++i) {
      known[&main.parameter_instruction(i)] = &program.arguments[i];
    }
    const auto& values = main.return_instruction()->operands();
    for (size_t r = 0; r < values.size(); ++r) {
      const Literal& right = (*expected)[r];
      const Literal& wrong = (*actual)[r];
      known[values[r].def] = &right;
      const int64_t at = first_difference(right, wrong);
      if (at < 0) continue;
      std::string operands;
      for (const hlo::Value operand : values[r].def->operands()) {
        const Literal& value = *known.at(operand.def);
        operands += fmt::format(" {} {}", tenon::name_of(value.element_type()),
                                value.element_to_string(at));
      }
      return fmt::format("{} of{}: {} {}, expected {}", op_name(values[r].def->code()), operands,
                         tenon::name_of(wrong.element_type()), wrong.element_to_string(at),
                         right.element_to_string(at));
    }
    return "no op by itself";
  }

  int64_t steps_ = 0;  // Number of steps run on devices.
  int64_t idle_ = 0;   // Number of runs in which the device ran no step.
  std::shared_ptr<runtime::Client> interp_;
  std::map<std::string, std::shared_ptr<runtime::Client>> clients_;
};

bool is_chosen(const Options& options, ElementType type) {
  return options.types.empty() || std::find(options.types.begin(), options.types.end(),
                                            tenon::name_of(type)) != options.types.end();
}

// Whether a program of every op on a type is left out: of a float narrower than 16 bits all but one
// of `of_narrow` are, other ones than of the previous type. Most of their code is that of f32.
bool is_left_out(const Options& options, const ElementTypeInfo& type, int64_t number) {
  const auto index = static_cast<int64_t>(type.type);
  return is_float(type.type) && bit_width(type.type) < 16 &&
         (number + index) % options.of_narrow != 0;
}

int run(const Options& options) {
  auto bits = Bits::open(options.devices);
  if (!bits) {
    fmt::print("FAIL {}\n", bits.error().to_string());
    return 1;
  }
  constexpr int kOpsPerProgram = 12;
  constexpr int64_t kMostFailures = 20;
  int64_t failed = 0;
  int64_t every_op = 0;
  for (const ElementTypeInfo& type : element_types()) {
    if (!is_chosen(options, type.type)) continue;
    int64_t number = 0;
    for (const auto& program : programs_of_every_op(type.type, kOpsPerProgram, options.without)) {
      if (failed == kMostFailures) break;
      if (is_left_out(options, type, number++)) continue;
      if (!bits->check(program, fmt::format("every op on {}", type.name))) ++failed;
      ++every_op;
    }
  }
  if (bits->idle() > 0) {
    fmt::print("FAIL {} runs of programs of every op ran nothing on the device\n", bits->idle());
    ++failed;
  }
  SuiteProgress progress("random programs:", options.count);
  for (int64_t i = 0; i < options.count && failed < kMostFailures; ++i) {
    progress.done(i);
    const int64_t seed = options.seed + i;
    const auto program = random_elementwise_program(
        static_cast<uint64_t>(seed), static_cast<int>(options.size), options.without);
    if (!bits->check(program, fmt::format("--types=none --count=1 --seed={}", seed))) ++failed;
  }
  progress.clear();
  const int64_t runs = options.count * static_cast<int64_t>(options.devices.size());
  // For example x > x, if it is the only result: about one in ten.
  if (runs >= 20 && bits->idle() * 4 > runs) {
    fmt::print("FAIL {} of {} runs of random programs ran nothing on the device\n", bits->idle(),
               runs);
    ++failed;
  }
  if (failed == 0) {
    fmt::print(
        "PASS the bits of interp on {}: {} programs of every op, {} random ones (nothing ran on "
        "the "
        "device in {} of {} runs)\n",
        fmt::join(options.devices, ", "), every_op, options.count, bits->idle(), runs);
  }
  return failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Elementwise programs give the same bits on every device as on interp.");
  std::vector<std::string> without;
  app.add_option("--devices", options.devices, "names, or paths of plug-ins")
      ->delimiter(',')
      ->check([](const std::string& name) {
        return std::string(name == "interp" ? "interp is what the devices are held against" : "");
      })
      ->capture_default_str();
  app.add_option("--types", options.types,
                 "element types of the programs of every op, or none; else all")
      ->delimiter(',')
      ->check(is_element_type() | CLI::IsMember({"none"}));
  app.add_option("--of-narrow", options.of_narrow,
                 "of the programs of every op on floats narrower than 16 bits, one of this many")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--without", without, "ops that are left out")->delimiter(',')->check(is_op());
  app.add_option("--count", options.count, "of random programs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the first of them")->capture_default_str();
  app.add_option("--size", options.size, "ops of one, about")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  if (const auto status = parse(app, argc, argv)) return *status;
  for (const std::string& name : without) {
    options.without.push_back(*tenon::hlo::op_from_name(name));
  }
  return run(options);
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  return tenon::conformance::guarded([&] { return tenon::conformance::run(argc, argv); });
}
