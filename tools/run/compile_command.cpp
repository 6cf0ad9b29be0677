// `tenon compile`: compiles a program for a device that need not be there.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/file.h"
#include "core/program/serial.h"
#include "core/runtime/serial.h"
#include "hlo/driver/compile.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "tools/arguments.h"
#include "tools/cli.h"
#include "tools/compile_options.h"
#include "tools/device_options.h"
#include "tools/run/run_times.h"

namespace tenon::tools {
namespace {

struct CompileCommandOptions {
  std::string file;
  std::string output;
  std::string device;
  std::string target_info;
  DeviceOptions device_options;
  std::string entry;
  std::vector<std::string> shapes;
  std::vector<std::string> args;
  hlo::rewrite::Options rewrites;
  std::vector<std::string> tuning;
  bool strict = false;
  bool json = false;
};

// An error if the devices that the backend describes here, if any, have another compiler than the
// target: what this one compiles would not be what that one does (B13), for example code for other
// instructions of a CPU.
Status check_compiler(backend::Backend& backend, const backend::TargetInfo& target) {
  const auto devices = backend.devices();
  if (!devices || devices->empty()) return {};
  for (const backend::DeviceInfo& each : *devices) {
    if (each.target.compiler_id == target.compiler_id) return {};
  }
  return failed_precondition("it states the compiler '{}', and that of {} here is '{}'",
                             target.compiler_id, backend.name(),
                             devices->front().target.compiler_id);
}

// The backend, and the target: of the file, or as the backend describes its device.
Result<ChosenTarget> target_of(const CompileCommandOptions& options) {
  const DeviceOptions device = {options.device, options.device_options.layers, ""};
  if (options.target_info.empty()) {
    Result<ChosenTarget> chosen = choose_target(device);
    if (chosen || chosen.error().stage() == kUsageStage) return chosen;
    Status why = chosen.error();
    return Error(Status(why.code(),
                        why.message() + "; --target-info compiles for a device that is not here"));
  }
  TENON_ASSIGN(const std::string text, read_file(options.target_info));
  auto target = backend::parse_target(text);
  if (!target) return Error(Status(target.error()).with_context(options.target_info));
  TENON_ASSIGN(const ChosenDevice chosen, choose_device(device));
  if (chosen.index != 0) {
    return Error(Status(invalid_argument("--target-info describes the device: --device {} without "
                                         "a number names the backend",
                                         chosen.backend->name()))
                     .in_stage(kUsageStage));
  }
  Status same = check_compiler(*chosen.backend, *target);
  if (!same.ok()) return Error(std::move(same).with_context(options.target_info));
  return ChosenTarget{chosen.backend, *std::move(target)};
}

// The names that the source gives to a function's arrays, if it has one for each and no two are the
// same; else x0, x1 …
std::vector<std::string> names_or(std::vector<std::string> given, size_t count, char letter) {
  std::vector<std::string> sorted = given;
  std::ranges::sort(sorted);
  const bool good = given.size() == count && (sorted.empty() || !sorted.front().empty()) &&
                    std::ranges::adjacent_find(sorted) == sorted.end();
  if (good) return given;
  given.clear();
  for (size_t i = 0; i < count; ++i) given.push_back(fmt::format("{}{}", letter, i));
  return given;
}

void add_names(const hlo::Computation& function, runtime::CompiledProgram& compiled) {
  std::vector<std::string> results;
  for (const hlo::Dict& attributes : function.result_attributes()) {
    const hlo::Attribute* const name = hlo::find(attributes, "jax.result_info");
    const auto* const text = name == nullptr ? nullptr : name->get<std::string>();
    results.push_back(text == nullptr ? "" : *text);
  }
  compiled.parameter_names = parameter_names(function);
  compiled.result_names = std::move(results);
}

Result<hlo::Compilation> compile_bytes(std::string_view bytes, const std::string& path,
                                       const CompileCommandOptions& options,
                                       const ChosenTarget& chosen) {
  hlo::CompileOptions compile;
  compile.strict = options.strict;
  compile.rewrites = options.rewrites;
  TENON_TRY(set_tuning(options.tuning, compile.lower.tuning));
  if (bytes.starts_with(program::kProgramFormat.letters)) {
    if (!options.entry.empty() || !options.shapes.empty()) {
      return Error(Status(invalid_argument("a saved program has one entry and static shapes"))
                       .in_stage(kUsageStage));
    }
    TENON_ASSIGN(const program::Program program, program::load_program(bytes));
    return hlo::compile(program, *chosen.backend, chosen.target, compile);
  }
  TENON_ASSIGN(std::unique_ptr<hlo::Module> module,
               import_program(bytes, path, {options.shapes, options.args}));
  const hlo::Computation* entry =
      options.entry.empty() ? module->entry() : module->find_function(options.entry);
  if (entry == nullptr) {
    if (!options.entry.empty()) return not_found("there is no function @{}", options.entry);
    return invalid_argument(
        "there is no @main, and no single public function; name one with --entry");
  }
  compile.lower.entry = entry->name();
  TENON_ASSIGN(const GivenArguments given, GivenArguments::read(*entry, options.args));
  hlo::ArgumentKnowledge known;
  TENON_ASSIGN(known.shapes, parse_shapes(options.shapes));
  if (hlo::is_dynamic(*module) || !known.shapes.empty()) {
    known.entry = entry->name();
    TENON_TRY(given.add_to(known, *entry));
    TENON_ASSIGN(module, hlo::refine(*module, known));
    entry = module->find_function(compile.lower.entry);
  }
  TENON_ASSIGN(hlo::Compilation compilation,
               hlo::compile(*module, *chosen.backend, chosen.target, compile));
  add_names(*entry, compilation.compiled);
  return compilation;
}

void complete_names(runtime::CompiledProgram& compiled) {
  compiled.parameter_names =
      names_or(std::move(compiled.parameter_names), compiled.program.parameters.size(), 'x');
  compiled.result_names =
      names_or(std::move(compiled.result_names), compiled.program.results.size(), 'y');
  compiled.made_by = "tenon " TENON_VERSION;
}

nlohmann::json arrays_json(const program::Program& program,
                           const std::vector<program::BufferId>& ids,
                           const std::vector<std::string>& names) {
  nlohmann::json arrays = nlohmann::json::array();
  for (size_t i = 0; i < ids.size(); ++i) {
    const program::Buffer& buffer = program.buffer(ids[i]);
    arrays.push_back({{"name", names[i]},
                      {"type", std::string(name_of(buffer.type))},
                      {"dims", buffer.dims},
                      {"bytes", buffer.bytes()}});
  }
  return arrays;
}

void print_report(const hlo::Compilation& compilation, const ChosenTarget& chosen,
                  size_t file_bytes, const CompileCommandOptions& options) {
  for (const std::string& each : compilation.warnings) fmt::print(stderr, "warning: {}\n", each);
  const runtime::CompiledProgram& compiled = compilation.compiled;
  const auto host =
      std::ranges::count(compilation.placement, hlo::PlacementKind::kHost, &hlo::Placement::kind);
  const auto steps = static_cast<int64_t>(compilation.placement.size());
  if (!options.json) {
    fmt::print("{}: {} bytes, for {} ({}); {} on the device, {} on the host\n", options.output,
               file_bytes, chosen.backend->name(), chosen.target.name,
               counted(steps - host, "step"), host);
    const hlo::Placement* const declined = hlo::first_declined(compilation.placement);
    if (declined != nullptr) {
      fmt::print("the device declined steps, for example {}: {}\n", declined->label,
                 declined->reason);
    }
    return;
  }
  const std::string compiled_for = runtime::compiled_for(*chosen.backend, chosen.target);
  print_json(
      {{"file", options.output},
       {"bytes", file_bytes},
       {"device", std::string(chosen.backend->name())},
       {"target", chosen.target.name},
       {"fingerprint", serial::digest_of(compiled_for)},
       {"arguments",
        arrays_json(compiled.program, compiled.program.parameters, compiled.parameter_names)},
       {"results", arrays_json(compiled.program, compiled.program.results, compiled.result_names)},
       {"steps", {{"device", steps - host}, {"host", host}}}});
}

Status compile_file(const CompileCommandOptions& options) {
  TENON_ASSIGN(const InputFile input, read_input(options.file));
  TENON_ASSIGN(const ChosenTarget chosen, target_of(options));
  TENON_ASSIGN(hlo::Compilation compilation,
               compile_bytes(input.bytes, input.name, options, chosen));
  complete_names(compilation.compiled);
  const std::string file =
      runtime::save(compilation.compiled, runtime::compiled_for(*chosen.backend, chosen.target));
  TENON_TRY(write_file(options.output, file));
  print_report(compilation, chosen, file.size(), options);
  return {};
}

}  // namespace

void add_compile_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<CompileCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "compile", "Compile a program for a device that need not be there, into one file");
  command
      ->add_option("FILE", options->file,
                   "StableHLO text, portable artifact, HLO proto, ONNX model or saved program; '-' "
                   "is standard input")
      ->required();
  command->add_option("-o,--output", options->output, "File to write")
      ->required()
      ->type_name("FILE")
      ->check([](const std::string& path) {
        return std::string(path.empty() || path == "-" ? "a file is expected" : "");
      });
  command
      ->add_option(
          "--device", options->device,
          "Device to compile for: a backend's NAME or NAME:NUMBER, or the path of a plug-in")
      ->required();
  command
      ->add_option("--target-info", options->target_info,
                   "Target to compile for, as 'tenon devices --target' printed it where the device "
                   "is (default: the backend's description of a device here)")
      ->type_name("FILE");
  command->add_option("--entry", options->entry, "Function to compile, if not @main")
      ->type_name("NAME");
  add_input_options(*command, options->shapes, options->args);
  add_layer_option(*command, options->device_options);
  add_rule_options(*command, options->rewrites);
  add_tuning_options(*command, options->tuning);
  command->add_flag("--strict", options->strict,
                    "Fail if a step would run on the host because the device declines it");
  command->add_flag("--json", options->json, "Print what was compiled as JSON");
  command->footer(
      "'tenon run FILE --device NAME' and programs with tenon/runtime.h run the file.\n\nExample:\n"
      "  tenon compile samples/digits_inference/program.mlir -o digits.tncp --device template");
  command->callback([options, exit_code] {
    const Status status = compile_file(*options);
    *exit_code = status.ok() ? 0 : report(status);
  });
}

}  // namespace tenon::tools
