// `tenon opt`: runs compiler stages on a program and prints the result.
#include <fmt/ranges.h>

#include <algorithm>

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

namespace tenon::tools {
namespace {

struct OptOptions {
  std::string file;
  std::string emit = "hlo";
  std::string output;
  std::vector<std::string> shapes;
  std::vector<std::string> passes;
  std::vector<std::string> calls;
  bool locations = false;
  bool print_each = false;
  bool print_hits = false;
  hlo::rewrite::Options rewrites;
  std::vector<std::string> tuning;
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

Result<std::string> optimise(const OptOptions& options) {
  TENON_ASSIGN(std::unique_ptr<hlo::Module> module, load_module(options.file));
  const bool lowers = options.emit == "kernels" || options.emit.starts_with("program");
  if (!options.shapes.empty() || (lowers && hlo::is_dynamic(*module))) {
    hlo::ArgumentKnowledge known;
    TENON_ASSIGN(known.shapes, parse_shapes(options.shapes));
    TENON_ASSIGN(module, hlo::refine(*module, known));
  }
  TENON_TRY(run_passes(*module, options));
  return lowers ? lowered_text(*module, options) : module_text(*module, options);
}

int opt(const OptOptions& options) {
  if (options.emit == "program-bytes" && options.output.empty()) {
    Status unnamed = invalid_argument("--emit=program-bytes writes a file: name it with -o");
    return report(std::move(unnamed).in_stage(kUsageStage));
  }
  const auto text = optimise(options);
  if (!text) return report(text.error());
  if (options.output.empty()) {
    fmt::print("{}", *text);
    return 0;
  }
  const Status written = write_file(options.output, *text);
  return written.ok() ? 0 : report(written);
}

}  // namespace

void add_opt_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "Import a program and print it after a stage");
  command
      ->add_option("FILE", options->file,
                   "StableHLO text, HLO text or portable artifact; '-' is standard input")
      ->required();
  command->add_option("--emit", options->emit, "Form of the output")
      ->check(CLI::IsMember({"hlo", "stablehlo", "kernels", "program", "program-bytes"}))
      ->capture_default_str();
  command
      ->add_option("--shape", options->shapes,
                   "Refine a dynamic program: sizes of parameter N as N=2x3")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
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
      "program-bytes is the serial form of a Program, which 'tenon run' takes: with "
      "-o.\n\nPasses:\n";
  for (const hlo::Pass& pass : hlo::all_passes()) {
    footer += fmt::format("  {:<12} {}\n", pass.name, pass.summary);
  }
  command->footer(footer);
  command->callback([options, exit_code] { *exit_code = opt(*options); });
}

}  // namespace tenon::tools
