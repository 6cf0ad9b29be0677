// `tenon run`: runs a program on a device.
#include <algorithm>
#include <cstring>

#include "core/backend/registry/registry.h"
#include "core/base/file.h"
#include "core/base/process/environment.h"
#include "core/program/serial.h"
#include "core/runtime/serial.h"
#include "hlo/driver/run.h"
#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/processes/run_parallel.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "tools/arguments.h"
#include "tools/cli.h"
#include "tools/compile_options.h"
#include "tools/run/run_outcome.h"

namespace tenon::tools {
namespace {

constexpr int64_t kUsualRepeat = 10;
constexpr int64_t kLongestLimit = 1'000'000'000;

void set_declined(RunOutcome& outcome, const hlo::RunInfo& info) {
  outcome.times = info.times;
  outcome.warnings = info.warnings;
  const hlo::Placement* const step = hlo::first_declined(info.placement);
  if (step != nullptr) outcome.declined = fmt::format("{}: {}", step->label, step->reason);
}

const hlo::Computation* entry_of(const hlo::Module& module, const std::string& name) {
  return name.empty() ? module.entry() : module.find_function(name);
}

// Sizes and integer values of the arguments make a dynamic program static.
Result<std::unique_ptr<hlo::Module>> make_static(std::unique_ptr<hlo::Module> module,
                                                 const GivenArguments& given,
                                                 const RunOptions& options) {
  hlo::ArgumentKnowledge known;
  TENON_ASSIGN(known.shapes, parse_shapes(options.shapes));
  if (!hlo::is_dynamic(*module) && known.shapes.empty()) return module;
  known.entry = options.entry;
  TENON_TRY(given.add_to(known, *entry_of(*module, options.entry)));
  return hlo::refine(*module, known);
}

// Arrays can be shown and written; tokens may only be the last results, and are not shown.
Status check_results(const hlo::Computation& entry) {
  const std::vector<hlo::Type> types = entry.result_types();
  bool token = false;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool array = types[i].is_tensor();
    if (!array && types[i].kind() != hlo::TypeKind::kToken) {
      return unimplemented("result {} of @{} is {}; only arrays can be shown", i, entry.name(),
                           types[i].to_string());
    }
    if (array && token) {
      return unimplemented("result {} of @{} follows a token", i, entry.name());
    }
    token |= !array;
  }
  return {};
}

// Refuses options that the selected mode would ignore.
Status check_options(const RunOptions& options, bool evaluates) {
  const auto refused = [](std::string_view option, std::string_view why) {
    return Status(invalid_argument("{} {}", option, why)).in_stage(kUsageStage);
  };
  if (!evaluates)
    return options.wide ? refused("--wide", "is only for the reference device") : Status();
  constexpr std::string_view kWhy =
      "needs a --device: without one, or with 'reference', the program is evaluated op by op";
  if (options.device_options.layers) return refused("--layer", kWhy);
  if (options.strict) return refused("--strict", kWhy);
  if (options.time) return refused("--time", kWhy);
  if (options.steps) return refused("--steps", kWhy);
  if (options.repeat > 0) return refused("--repeat", kWhy);
  if (options.time_limit >= 0) return refused("--time-limit", kWhy);
  return options.legalize.empty() ? Status() : refused("--legalize", kWhy);
}

Result<int64_t> time_limit_of(const RunOptions& options) {
  if (options.time_limit >= 0) return options.time_limit;
  return environment_number("TENON_TIME_LIMIT", 0, {0, kLongestLimit}, "milliseconds");
}

// Opens the device, within the layer of `steps` if there is one; other devices of its backend are
// for processes that a program starts.
Result<hlo::RunTarget> open_target(const RunOptions& options, StepTimes* steps) {
  TENON_ASSIGN(ChosenDevice chosen,
               choose_device({options.device, options.device_options.layers, options.legalize}));
  runtime::ClientOptions one;
  one.devices = {chosen.index};
  constexpr int64_t kMillisecond = 1'000'000;
  TENON_ASSIGN(const int64_t limit, time_limit_of(options));
  one.limits.time_limit = limit * kMillisecond;
  hlo::RunTarget target;
  target.repeat = options.repeat > 0              ? options.repeat
                  : options.time || options.steps ? kUsualRepeat
                                                  : 1;
  if (steps != nullptr) {
    TENON_ASSIGN(chosen.backend, steps->around(std::move(chosen.backend)));
    target.observer = steps;
  }
  TENON_ASSIGN(target.client, runtime::Client::open(std::move(chosen.backend), one));
  return target;
}

using RunOnDevice = std::function<Result<std::vector<Literal>>(
    const hlo::RunTarget& target, const hlo::Checks& checks, hlo::RunInfo& info)>;

// Runs the program; with --steps a second time, to measure its steps: that does not disturb the
// times of the first run.
Result<RunOutcome> run_on(const RunOptions& options, const RunOnDevice& run) {
  RunOutcome outcome;
  {
    TENON_ASSIGN(const hlo::RunTarget target, open_target(options, nullptr));
    const hlo::Checks checks(&outcome.failures, &outcome.checks);
    hlo::RunInfo info;
    TENON_ASSIGN(outcome.results, run(target, checks, info));
    outcome.steps = info.steps;
    outcome.folded = info.folded;
    set_declined(outcome, info);
  }
  if (!options.steps) return outcome;
  outcome.step_times = std::make_shared<StepTimes>();
  {
    TENON_ASSIGN(const hlo::RunTarget target, open_target(options, outcome.step_times.get()));
    std::vector<hlo::CheckFailure> failures;  // Those of the first run are reported.
    int64_t count = 0;
    const hlo::Checks checks(&failures, &count);
    hlo::RunInfo info;
    TENON_ASSIGN(std::ignore, run(target, checks, info));
    outcome.times_of_steps = info.times;
  }
  // The layer has told of all work when the device is closed.
  constexpr int64_t kLongest = 5'000'000'000;
  if (!runtime::await_all_closed(kLongest)) return internal_error("the device does not close");
  return outcome;
}

Result<hlo::CompileOptions> compile_options(const RunOptions& options) {
  hlo::CompileOptions compile;
  compile.lower.entry = options.entry;
  compile.strict = options.strict;
  compile.rewrites = options.rewrites;
  TENON_TRY(set_tuning(options.tuning, compile.lower.tuning));
  return compile;
}

// The values of --arg for a program's parameters, which are parsed as those of a function.
Result<std::vector<Literal>> arguments_of(const program::Program& program,
                                          const std::vector<std::string>& specs) {
  hlo::Module signature;
  hlo::Computation& entry = signature.add_function("main");
  for (const program::BufferId id : program.parameters) {
    const program::Buffer& buffer = program.buffer(id);
    entry.add_parameter(hlo::Type::tensor(buffer.type, buffer.dims));
  }
  return parse_arguments(entry, specs);
}

// Refuses options that no saved or compiled program has.
Status check_saved(const RunOptions& options) {
  if (options.device == "reference") {
    return Status(invalid_argument(
                      "the reference device evaluates modules; --device=interp runs programs"))
        .in_stage(kUsageStage);
  }
  if (!options.entry.empty() || !options.shapes.empty()) {
    return Status(invalid_argument("a saved program has one entry and static shapes"))
        .in_stage(kUsageStage);
  }
  return check_options(options, false);
}

// Runs a saved Program.
Result<RunOutcome> run_program(std::string_view bytes, const RunOptions& options) {
  TENON_TRY(check_saved(options));
  TENON_ASSIGN(const program::Program program, program::load_program(bytes));
  TENON_ASSIGN(const std::vector<Literal> arguments, arguments_of(program, options.args));
  TENON_ASSIGN(const hlo::CompileOptions compile, compile_options(options));
  return run_on(options,
                [&](const hlo::RunTarget& target, const hlo::Checks& checks, hlo::RunInfo& info) {
                  return hlo::run_on_device(target, program, arguments, checks, compile, &info);
                });
}

// Runs a file of `tenon compile`, without compiling.
Result<RunOutcome> run_compiled(std::string_view bytes, const RunOptions& options) {
  TENON_TRY(check_saved(options));
  if (options.strict || !options.tuning.empty() || !options.rewrites.disabled.empty()) {
    Status refused = invalid_argument(
        "the program is compiled already: --strict, --tune and --disable-rule are for 'tenon "
        "compile'");
    return Error(std::move(refused).in_stage(kUsageStage));
  }
  TENON_ASSIGN(const ChosenTarget chosen,
               choose_target({options.device, options.device_options.layers, options.legalize}));
  TENON_ASSIGN(
      const runtime::CompiledProgram compiled,
      runtime::load_compiled_program(bytes, runtime::compiled_for(*chosen.backend, chosen.target)));
  TENON_ASSIGN(const std::vector<Literal> arguments, arguments_of(compiled.program, options.args));
  return run_on(options,
                [&](const hlo::RunTarget& target, const hlo::Checks& checks, hlo::RunInfo& info) {
                  return hlo::run_on_device(target, compiled, arguments, checks, &info);
                });
}

Result<RunOutcome> run_module(std::unique_ptr<hlo::Module> module, const RunOptions& options) {
  const bool evaluates = options.device == "reference" || options.device.empty();
  TENON_TRY(check_options(options, evaluates));
  if (entry_of(*module, options.entry) == nullptr) {
    if (!options.entry.empty()) return not_found("there is no function @{}", options.entry);
    return invalid_argument(
        "there is no @main, and no single public function; name one with --entry");
  }
  TENON_ASSIGN(const GivenArguments given,
               GivenArguments::read(*entry_of(*module, options.entry), options.args));
  TENON_ASSIGN(module, make_static(std::move(module), given, options));
  const hlo::Computation& entry = *entry_of(*module, options.entry);
  TENON_TRY(check_results(entry));
  TENON_ASSIGN(const std::vector<Literal> arguments, given.complete(entry));
  if (!evaluates) {
    TENON_ASSIGN(hlo::CompileOptions compile, compile_options(options));
    compile.lower.entry = entry.name();
    return run_on(options,
                  [&](const hlo::RunTarget& target, const hlo::Checks& checks, hlo::RunInfo& info) {
                    return hlo::run_on_device(target, *module, arguments, checks, compile, &info);
                  });
  }
  RunOutcome outcome;
  ProgressLine progress("running");
  hlo::EvaluatorOptions evaluator_options;
  evaluator_options.wide = options.wide;
  evaluator_options.progress = [&](int64_t done) {
    progress.update(done);
    return true;
  };
  hlo::Evaluator evaluator(*module, evaluator_options);
  hlo::install_checks(evaluator, &outcome.failures, &outcome.checks);
  hlo::install_run_parallel(evaluator);
  TENON_ASSIGN(outcome.results, evaluator.run(entry, arguments));
  return outcome;
}

Result<RunOutcome> run_bytes(std::string_view bytes, const std::string& name,
                             const RunOptions& options) {
  const bool compiled = bytes.starts_with(runtime::kCompiledProgramFormat.letters);
  if (compiled || bytes.starts_with(program::kProgramFormat.letters)) {
    Result<RunOutcome> outcome =
        compiled ? run_compiled(bytes, options) : run_program(bytes, options);
    if (!outcome) return Error(std::move(outcome).error().with_context(name));
    return outcome;
  }
  TENON_ASSIGN(std::unique_ptr<hlo::Module> module,
               import_program(bytes, name, {options.shapes, options.args}));
  return run_module(std::move(module), options);
}

int run_one(std::string_view bytes, const std::string& name, const RunOptions& options) {
  const auto outcome = run_bytes(bytes, name, options);
  if (!outcome) return report(outcome.error());
  if (!options.out_dir.empty()) {
    const Status written = write_results(*outcome, options.out_dir);
    if (!written.ok()) return report(written);
  }
  print_results(*outcome, options);
  if (outcome->failures.empty()) return 0;
  const hlo::CheckFailure& first = outcome->failures.front();
  return report(Status(ErrorCode::kFailedPrecondition, first.text).at(first.position));
}

// A test file contains several programs, separated by lines "// -----". Each part is padded with
// the lines before it, so that positions are those of the file.
std::vector<std::string> split_programs(std::string_view bytes) {
  std::vector<std::string> parts(1);
  size_t lines = 0;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    const std::string_view line = bytes.substr(0, end);
    ++lines;
    if (line.starts_with("// -----")) {
      parts.emplace_back(lines, '\n');
    } else {
      parts.back() += line;
    }
    bytes.remove_prefix(end);
  }
  return parts;
}

/// Only space and comments.
bool is_blank(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    const size_t first = line.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && !line.substr(first).starts_with("//")) return false;
    text.remove_prefix(end);
  }
  return true;
}

// A known name, or a path: a plug-in's errors are reported when it is opened.
bool is_known(const std::string& device) {
  const auto name = backend::parse_device_name(device);
  if (!name) return false;
  if (name->backend.find('/') != std::string::npos) return true;
  const auto backend = backend::Registry::instance().get(name->backend);
  return backend || backend.error().code() != ErrorCode::kNotFound;
}

int run(const RunOptions& options) {
  if (!options.device.empty() && options.device != "reference" && !is_known(options.device)) {
    Status unknown =
        not_found("there is no device '{}'; 'tenon devices' lists them", options.device);
    return report(std::move(unknown).in_stage(kUsageStage));
  }
  const auto input = read_input(options.file);
  if (!input) return report(input.error());
  const auto& [bytes, name] = *input;
  if (!options.split) return run_one(bytes, name, options);
  int exit_code = 0;
  const std::vector<std::string> parts = split_programs(bytes);
  // A file with only comments is not a program, but a part of a file may be.
  const bool all_blank = std::all_of(parts.begin(), parts.end(), is_blank);
  for (const std::string& part : parts) {
    if (is_blank(part) && !all_blank) continue;
    exit_code = std::max(exit_code, run_one(part, name, options));
    if (all_blank) break;
  }
  return exit_code;
}

}  // namespace

void add_run_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a program and print or write its results");
  command
      ->add_option(
          "FILE", options->file,
          "StableHLO text, portable artifact, HLO proto, ONNX model, saved program or compiled "
          "program (tenon compile); '-' is standard input")
      ->required();
  command->add_option(
      "--device", options->device,
      "Device to run on: a backend's NAME or NAME:NUMBER, or the path of a plug-in (default: "
      "reference; for a saved or compiled program interp)");
  command
      ->add_option("--arg", options->args,
                   "Argument N: N=@FILE.npy, N=VALUE (every element) or N=random[:SEED]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--shape", options->shapes,
                   "Sizes of parameter N of a dynamic program: N=2x3, or N=scalar")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::Option* out =
      command->add_option("--out", options->out_dir, "Write the results to DIR/out_N.npy")
          ->type_name("DIR")
          ->check([](const std::string& directory) {
            return std::string(directory.empty() ? "a folder is expected" : "");
          });
  command->add_option("--entry", options->entry, "Function to run, if not @main")
      ->type_name("NAME");
  CLI::Option* json = command->add_flag("--json", options->json, "Print the results as JSON");
  command->add_flag(
      "--wide", options->wide,
      "Evaluate floats in a wider type without intermediate rounding (reference only)");
  command
      ->add_option(
          "--legalize", options->legalize,
          "Run kernels legalised for a target with f32, 32-bit integers and these features "
          "(interp only): least, or a list as for 'tenon kernel'")
      ->type_name("FORM");
  command->add_flag("--split", options->split, "Run each part between '// -----' lines separately")
      ->excludes(out)
      ->excludes(json);
  add_layer_option(*command, options->device_options);
  add_rule_options(*command, options->rewrites);
  add_tuning_options(*command, options->tuning);
  command->add_flag("--strict", options->strict,
                    "Fail if a step would run on the host because the device declines it");
  command->add_flag(
      "--time", options->time,
      "Print seconds: of each execution (median, least, first), of compilation and transfers");
  command->add_flag(
      "--steps", options->steps,
      "Run again with an event after each step, and print for each its launches, median time and "
      "share, and the transfers");
  command
      ->add_option("--repeat", options->repeat,
                   "Executions on the same arguments (with --time or --steps 10)")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->type_name("N");
  command
      ->add_option("--time-limit", options->time_limit,
                   "Milliseconds that an execution may take on the device; 0: any time (default: "
                   "TENON_TIME_LIMIT)")
      ->check(CLI::Range(int64_t{0}, kLongestLimit))
      ->type_name("MS");
  command->add_flag("--quiet", options->quiet, "Do not print results");
  command->footer(
      "Programs that call check.* targets exit with 1 and the first mismatch when a check\n"
      "fails.\n\nExample:\n"
      "  tenon run samples/int8_dot/program.mlir --arg 0=random:1 --arg 1=random:2");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tenon::tools
