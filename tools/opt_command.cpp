// `tenon opt`: a program through the compiler's stages, as text.
#include "core/types/file.h"
#include "hlo/import/refine.h"
#include "hlo/text/printer.h"
#include "tools/arguments.h"
#include "tools/cli.h"

namespace tenon::tools {
namespace {

struct OptOptions {
  std::string file;
  std::string emit = "hlo";
  std::string output;
  std::vector<std::string> shapes;
  bool locations = false;
};

Result<std::string> optimise(const OptOptions& options) {
  TENON_ASSIGN(std::unique_ptr<hlo::Module> module, load_module(options.file));
  if (!options.shapes.empty()) {
    hlo::ArgumentKnowledge known;
    TENON_ASSIGN(known.shapes, parse_shapes(options.shapes));
    TENON_ASSIGN(module, hlo::refine(*module, known));
  }
  hlo::PrintOptions print;
  print.form = options.emit == "hlo" ? hlo::TextForm::kHlo : hlo::TextForm::kStableHlo;
  print.locations = options.locations;
  return hlo::print_module(*module, print);
}

int opt(const OptOptions& options) {
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
      ->check(CLI::IsMember({"hlo", "stablehlo"}))
      ->capture_default_str();
  command
      ->add_option("--shape", options->shapes,
                   "Refine a dynamic program: sizes of parameter N as N=2x3")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--locations", options->locations, "Print source locations");
  command->add_option("-o,--output", options->output, "Write to FILE instead of standard output")
      ->type_name("FILE");
  command->callback([options, exit_code] { *exit_code = opt(*options); });
}

}  // namespace tenon::tools
