// `tenon explain`: how a program is compiled for a device, without running it.
#include <map>
#include <nlohmann/json.hpp>

#include "hlo/driver/compile.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "tools/arguments.h"
#include "tools/cli.h"
#include "tools/compile_options.h"
#include "tools/device_options.h"

namespace tenon::tools {
namespace {

struct ExplainOptions {
  std::string file;
  DeviceOptions device;
  std::vector<std::string> shapes;
  std::vector<std::string> args;
  std::string entry;
  bool placement = true;
  bool json = false;
  hlo::rewrite::Options rewrites;
  std::vector<std::string> tuning;
};

Result<hlo::Compilation> compiled(const ExplainOptions& options) {
  TENON_ASSIGN(std::unique_ptr<hlo::Module> module,
               load_module(options.file, {options.shapes, options.args}));
  if (!options.shapes.empty() || hlo::is_dynamic(*module)) {
    hlo::ArgumentKnowledge known;
    known.entry = options.entry;
    TENON_ASSIGN(known.shapes, parse_shapes(options.shapes));
    TENON_ASSIGN(module, hlo::refine(*module, known));
  }
  TENON_ASSIGN(const ChosenTarget chosen, choose_target(options.device));
  hlo::CompileOptions compile;
  compile.lower.entry = options.entry;
  compile.rewrites = options.rewrites;
  TENON_TRY(set_tuning(options.tuning, compile.lower.tuning));
  return hlo::compile(std::move(module), *chosen.backend, chosen.target, compile);
}

void print_placement(const hlo::Compilation& compilation, bool json) {
  const std::vector<hlo::Placement>& placement = compilation.placement;
  if (json) {
    nlohmann::json steps = nlohmann::json::array();
    for (const hlo::Placement& each : placement) {
      steps.push_back({{"step", each.label},
                       {"runs", hlo::name_of(each.kind)},
                       {"kernel", each.kernel},
                       {"reason", each.reason},
                       {"bytes", each.bytes}});
    }
    const nlohmann::json document = {{"summary", hlo::summary(placement)},
                                     {"steps", steps},
                                     {"declined_segments", compilation.declined_segments},
                                     {"warnings", compilation.warnings}};
    print_json(document);
    return;
  }
  for (const std::string& each : compilation.warnings) fmt::print(stderr, "warning: {}\n", each);
  fmt::print("{}\n", hlo::summary(placement));
  for (const std::string& each : compilation.declined_segments) {
    fmt::print("declined as one segment: {}\n", each);
  }
  for (const hlo::Placement& each : placement) {
    fmt::print("{:<8}{:>12} bytes  {}{}\n", hlo::name_of(each.kind), each.bytes, each.label,
               each.reason.empty() ? "" : "  (" + each.reason + ")");
  }
}

int explain(const ExplainOptions& options) {
  const auto result = compiled(options);
  if (!result) return report(result.error());
  print_placement(*result, options.json);
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Show where each step of a program would run on a device");
  command
      ->add_option(
          "FILE", options->file,
          "StableHLO text, HLO text, portable artifact, HLO proto or ONNX model; '-' is standard "
          "input")
      ->required();
  command->add_option("--device", options->device.device,
                      "Device, as for 'tenon run' (default: interp)");
  add_layer_option(*command, options->device);
  add_rule_options(*command, options->rewrites);
  add_tuning_options(*command, options->tuning);
  add_input_options(*command, options->shapes, options->args);
  command->add_option("--entry", options->entry, "Function to compile instead of the main one");
  command->add_flag(
      "--placement", options->placement,
      "Show where each step runs: as a native call, as a kernel or on the host (the only report)");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "native: a call that the backend took. kernel: compiled for the device. host: declined by "
      "the "
      "device,\nor a function of the host; the bytes are those that the step reads and writes.\n"
      "In brackets: the call, the segment, or the device's reason for declining them.");
  command->callback([options, exit_code] { *exit_code = explain(*options); });
}

}  // namespace tenon::tools
