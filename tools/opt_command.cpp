// `tenon opt`: runs compiler stages on a program and prints the result.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/backend/layers/forward.h"
#include "core/base/file.h"
#include "core/kernel/text/text.h"
#include "core/program/serial.h"
#include "hlo/driver/compile.h"
#include "hlo/lower/library_calls.h"
#include "hlo/lower/lower.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "hlo/passes/pass.h"
#include "hlo/text/printer.h"
#include "tools/arguments.h"
#include "tools/cli.h"
#include "tools/compile_options.h"
#include "tools/device_options.h"

namespace tenon::tools {
namespace {

struct OptOptions {
  std::string file;
  std::string emit = "hlo";
  std::string output;
  std::vector<std::string> shapes;
  std::vector<std::string> args;
  std::vector<std::string> passes;
  std::vector<std::string> calls;
  bool locations = false;
  bool print_each = false;
  bool print_hits = false;
  hlo::rewrite::Options rewrites;
  std::vector<std::string> tuning;
  DeviceOptions device;
};

std::string module_text(const hlo::Module& module, const OptOptions& options) {
  hlo::PrintOptions print;
  print.form = options.emit == "stablehlo" ? hlo::TextForm::kStableHlo : hlo::TextForm::kHlo;
  print.locations = options.locations;
  return hlo::print_module(module, print);
}

// Whether a library call is named by --calls.
bool is_named(const program::LibraryCall& call, const std::vector<std::string>& calls) {
  const auto* const composite = std::get_if<program::Composite>(&call);
  return std::ranges::any_of(calls, [&](const std::string& name) {
    return name == "all" || name == program::name_of(call) ||
           (composite != nullptr && name == composite->name);
  });
}

Status run_passes(hlo::Module& module, const OptOptions& options) {
  for (const std::string& name : options.passes) {
    if (hlo::find_pass(name) != nullptr) continue;
    return Status(not_found("there is no pass '{}'; 'tenon opt --help' lists them", name))
        .in_stage(kUsageStage);
  }
  const std::vector<std::string_view> names(options.passes.begin(), options.passes.end());
  hlo::PassOptions pass_options;
  pass_options.verify = true;
  pass_options.rewrites = options.rewrites;
  hlo::rewrite::Statistics statistics;
  pass_options.rewrites.statistics = &statistics;
  if (options.print_each) {
    pass_options.after = [&](const hlo::Pass& pass, const hlo::Module& now) {
      fmt::print(stderr, "// after {}\n{}\n", pass.name, module_text(now, options));
    };
  }
  if (!options.calls.empty()) {
    pass_options.takes_composite = [&](const hlo::Instruction& op) -> Result<bool> {
      const auto site = hlo::lower::call_site_of(op);
      return site && is_named(site->call, options.calls);
    };
  }
  TENON_TRY(hlo::run_passes(module, names, pass_options));
  if (options.print_hits) print_rule_hits(stderr, statistics);
  return {};
}

// The text (or the saved bytes) of the Module's Program, or of its kernels.
Result<std::string> lowered_text(const hlo::Module& module, const OptOptions& options) {
  hlo::LowerOptions lower;
  if (!options.calls.empty()) {
    lower.takes_call = [&](const hlo::CallOffer& offer) {
      return is_named(offer.call, options.calls);
    };
  }
  TENON_TRY(set_tuning(options.tuning, lower.tuning));
  TENON_ASSIGN(const program::Program program, hlo::compile_to_program(module, lower));
  if (options.emit == "program") return program::print(program);
  if (options.emit == "program-bytes") return program::save(program);
  std::string text;
  for (const kernel::Kernel& kernel : program.kernels) text += kernel::print(kernel);
  return text;
}

// Notes the kernels that the backend was last asked to compile: if that fails, they are what a
// maker of the device needs to see.
class OfferedKernels final : public backend::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  Result<backend::Compiled> compile(const backend::TargetInfo& target,
                                    backend::Kernels kernels) override {
    last_.clear();
    for (const kernel::Kernel* each : kernels) last_.push_back(*each);
    return ForwardingBackend::compile(target, kernels);
  }
  const std::vector<kernel::Kernel>& last() const { return last_; }

 private:
  std::vector<kernel::Kernel> last_;
};

// The steps that run without a kernel of the device, as comments.
std::string other_steps(const hlo::Compilation& compilation) {
  std::string text;
  for (const hlo::Placement& each : compilation.placement) {
    if (each.kind == hlo::PlacementKind::kKernel) continue;
    text += fmt::format("// {}: {} ({})\n", hlo::name_of(each.kind), each.label, each.reason);
  }
  return text;
}

// The kernels of the Program that the device launches, by themselves or within segments.
std::vector<const kernel::Kernel*> kernels_on_device(const hlo::Compilation& compilation) {
  std::set<std::string_view> names;
  for (const hlo::Placement& each : compilation.placement) {
    if (each.kind == hlo::PlacementKind::kKernel) names.insert(each.kernel);
  }
  std::vector<const kernel::Kernel*> kernels;
  for (const kernel::Kernel& each : compilation.compiled.program.kernels) {
    if (names.contains(each.name)) kernels.push_back(&each);
  }
  return kernels;
}

// The Module as compiled for a device. If the device's compiler fails, `failed` is its error, and
// the text has the kernels that it was asked to compile.
Result<std::string> text_for_device(const hlo::Module& module, const OptOptions& options,
                                    Status& failed) {
  TENON_ASSIGN(ChosenTarget device, choose_target(options.device));
  const auto offered = std::make_shared<OfferedKernels>(device.backend);
  hlo::CompileOptions compile;
  compile.rewrites = options.rewrites;
  TENON_TRY(set_tuning(options.tuning, compile.lower.tuning));
  const auto compiled = hlo::compile(module, *offered, device.target, compile);
  const DeviceForm form = options.emit == "source" ? DeviceForm::kSource : DeviceForm::kKernels;
  if (!compiled) {
    if (offered->last().empty()) return tl::make_unexpected(compiled.error());
    failed = compiled.error();
    std::vector<const kernel::Kernel*> kernels;
    for (const kernel::Kernel& each : offered->last()) kernels.push_back(&each);
    return text_of(kernels, device, form);
  }
  for (const std::string& each : compiled->warnings) fmt::print(stderr, "warning: {}\n", each);
  const program::Program& program = compiled->compiled.program;
  if (options.emit == "program") return program::print(program);
  if (options.emit == "program-bytes") return program::save(program);
  TENON_ASSIGN(const std::string text, text_of(kernels_on_device(*compiled), device, form));
  return other_steps(*compiled) + text;
}

Result<std::string> optimise(const OptOptions& options, Status& failed) {
  TENON_ASSIGN(std::unique_ptr<hlo::Module> module,
               load_module(options.file, {options.shapes, options.args}));
  const bool lowers =
      options.emit == "kernels" || options.emit == "source" || options.emit.starts_with("program");
  if (!options.shapes.empty() || (lowers && hlo::is_dynamic(*module))) {
    hlo::ArgumentKnowledge known;
    TENON_ASSIGN(known.shapes, parse_shapes(options.shapes));
    TENON_ASSIGN(module, hlo::refine(*module, known));
  }
  TENON_TRY(run_passes(*module, options));
  if (!options.device.device.empty()) return text_for_device(*module, options, failed);
  return lowers ? lowered_text(*module, options) : module_text(*module, options);
}

Status check_options(const OptOptions& options) {
  const auto refused = [](std::string_view text) {
    return Status(invalid_argument("{}", text)).in_stage(kUsageStage);
  };
  if (options.emit == "program-bytes" && options.output.empty()) {
    return refused("--emit=program-bytes writes a file: name it with -o");
  }
  if (options.device.device.empty()) {
    if (options.device.layers) return refused("--layer needs a --device");
    return options.emit == "source" ? refused("--emit=source needs a --device") : Status();
  }
  if (options.emit == "hlo" || options.emit == "stablehlo") {
    return refused("--device needs --emit=kernels, source, program or program-bytes");
  }
  return options.calls.empty() ? Status() : refused("--device decides on calls: omit --calls");
}

int opt(const OptOptions& options) {
  if (const Status status = check_options(options); !status.ok()) return report(status);
  Status failed;
  const auto text = optimise(options, failed);
  if (!text) return report(failed.ok() ? text.error() : failed);
  if (options.output.empty()) {
    fmt::print("{}", *text);
  } else if (const Status written = write_file(options.output, *text); !written.ok()) {
    return report(written);
  }
  return failed.ok() ? 0 : report(failed);
}

}  // namespace

void add_opt_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "Import a program and print it after a stage");
  command
      ->add_option(
          "FILE", options->file,
          "StableHLO text, HLO text, portable artifact, HLO proto or ONNX model; '-' is standard "
          "input")
      ->required();
  command->add_option("--emit", options->emit, "Form of the output")
      ->check(CLI::IsMember({"hlo", "stablehlo", "kernels", "source", "program", "program-bytes"}))
      ->capture_default_str();
  command->add_option(
      "--device", options->device.device,
      "Compile for this device, as 'tenon run' does, and print its kernels in their legal form, "
      "the source that its compiler gets, or its Program: a backend's NAME or NAME:NUMBER, or the "
      "path of a plug-in");
  add_layer_option(*command, options->device);
  add_input_options(*command, options->shapes, options->args);
  command->add_option("--passes", options->passes, "Passes to run, in order: NAME,NAME,…")
      ->delimiter(',')
      ->type_name("PASSES");
  const auto names = program::library_call_names();
  std::vector<std::string> known = {"all"};
  known.insert(known.end(), names.begin(), names.end());
  const auto check_call = [known](const std::string& name) {
    const bool is_known =
        std::ranges::find(known, name) != known.end() || name.find('.') != std::string::npos;
    return is_known ? std::string() : fmt::format("there is no library call '{}'", name);
  };
  command
      ->add_option(
          "--calls", options->calls,
          "Make library calls of these of a program, as for a backend that takes them: " +
              fmt::format("{}, or a composite by its name (tenon idioms)", fmt::join(known, ", ")))
      ->delimiter(',')
      ->check(check_call)
      ->type_name("CALLS");
  command->add_flag("--print-after-each", options->print_each,
                    "Print the Module on standard error after each pass that changed it");
  add_rule_options(*command, options->rewrites);
  add_tuning_options(*command, options->tuning);
  command->add_flag("--rule-hits", options->print_hits,
                    "Print on standard error how often each rewrite rule was applied");
  command->add_flag("--locations", options->locations, "Print source locations");
  command->add_option("-o,--output", options->output, "Write to FILE instead of standard output")
      ->type_name("FILE");
  std::string footer =
      "program-bytes is the serial form of a Program, which 'tenon run' takes: with -o.\n"
      "source needs a device that renders kernels as C, OpenCL C or CUDA; others compile kernels "
      "themselves.\nIf the device's compiler refuses a program, opt prints what it was given, then "
      "its error.\n\nPasses:\n";
  for (const hlo::Pass& pass : hlo::all_passes()) {
    footer += fmt::format("  {:<12} {}\n", pass.name, pass.summary);
  }
  command->footer(footer);
  command->callback([options, exit_code] { *exit_code = opt(*options); });
}

}  // namespace tenon::tools
