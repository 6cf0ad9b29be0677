// `tenon run`: a program on a device.
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/types/file.h"
#include "core/types/npy.h"
#include "hlo/evaluator/checks.h"
#include "hlo/evaluator/run_parallel.h"
#include "hlo/import/refine.h"
#include "tools/arguments.h"
#include "tools/cli.h"

namespace tenon::tools {
namespace {

struct RunOptions {
  std::string file;
  std::string device = "reference";
  std::vector<std::string> args;
  std::vector<std::string> shapes;
  std::string out_dir;
  std::string entry;
  bool json = false;
  bool wide = false;
  bool split = false;
  bool quiet = false;
};

struct Outcome {
  std::vector<Literal> results;
  std::vector<hlo::CheckFailure> failures;
  int64_t checks = 0;
};

const hlo::Computation* entry_of(const hlo::Module& module, const std::string& name) {
  return name.empty() ? module.entry() : module.find_function(name);
}

// Sizes and integer values of the arguments make a dynamic program static.
Result<std::unique_ptr<hlo::Module>> make_static(std::unique_ptr<hlo::Module> module,
                                                 const RunOptions& options) {
  hlo::ArgumentKnowledge known;
  TENON_ASSIGN(known.shapes, parse_shapes(options.shapes));
  if (!hlo::is_dynamic(*module) && known.shapes.empty()) return module;
  known.entry = options.entry;
  const hlo::Computation& entry = *entry_of(*module, options.entry);
  for (const std::string& text : options.args) {
    const size_t equals = text.find('=');
    const size_t index = std::strtoull(text.c_str(), nullptr, 10);
    if (equals == std::string::npos || index >= entry.parameter_count()) continue;
    const hlo::Type& type = entry.parameter(index).type();
    if (text[equals + 1] == '@') {
      TENON_ASSIGN(Literal literal, read_npy(text.substr(equals + 2), type.element_type()));
      known.shapes.emplace(index, literal.shape().dims());
      if (is_integer(literal.element_type())) known.values.emplace(index, std::move(literal));
    } else if (is_integer(type.element_type()) && type.rank() == 0 &&
               text.compare(equals + 1, 6, "random") != 0) {
      known.values.emplace(
          index, Literal::scalar_integer(type.element_type(),
                                         std::strtoll(text.c_str() + equals + 1, nullptr, 10)));
    }
  }
  return hlo::refine(*module, known);
}

Result<Outcome> run_module(std::unique_ptr<hlo::Module> module, const RunOptions& options) {
  if (entry_of(*module, options.entry) == nullptr) {
    if (!options.entry.empty()) return not_found("there is no function @{}", options.entry);
    return invalid_argument(
        "there is no @main, and no single public function; name one with --entry");
  }
  TENON_ASSIGN(module, make_static(std::move(module), options));
  const hlo::Computation& entry = *entry_of(*module, options.entry);
  TENON_ASSIGN(const std::vector<Literal> arguments, parse_arguments(entry, options.args));
  Outcome outcome;
  Progress progress("running");
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

Status write_results(const Outcome& outcome, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return failed_precondition("cannot make {}: {}", directory, error.message());
  for (size_t i = 0; i < outcome.results.size(); ++i) {
    TENON_TRY(write_npy(fmt::format("{}/out_{}.npy", directory, i), outcome.results[i]));
  }
  return {};
}

void print_results(const Outcome& outcome, const RunOptions& options) {
  if (options.json) {
    nlohmann::json document;
    document["results"] = nlohmann::json::array();
    for (const Literal& result : outcome.results) {
      document["results"].push_back(
          {{"shape", result.shape().to_string()}, {"value", result.to_string(1 << 20)}});
    }
    document["checks"] = outcome.checks;
    document["failures"] = nlohmann::json::array();
    for (const hlo::CheckFailure& failure : outcome.failures) {
      document["failures"].push_back(failure.text);
    }
    fmt::print("{}\n", document.dump(2));
    return;
  }
  if (!options.out_dir.empty()) {
    fmt::print("{} results written to {}\n", outcome.results.size(), options.out_dir);
  } else if (!options.quiet) {
    for (size_t i = 0; i < outcome.results.size(); ++i) {
      fmt::print("{}: {} = {}\n", i, outcome.results[i].shape().to_string(),
                 outcome.results[i].to_string());
    }
  }
  if (outcome.checks != 0) {
    fmt::print("{} checks, {} failed\n", outcome.checks, outcome.failures.size());
  }
}

int run_one(std::string_view bytes, const std::string& name, const RunOptions& options) {
  auto module = hlo::import_module(bytes, name);
  if (!module) return report(module.error());
  const auto outcome = run_module(std::move(*module), options);
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

// Test files hold several programs, separated by lines "// -----". Each part is padded with the
// lines before it, so that positions are those of the file.
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

int run(const RunOptions& options) {
  if (options.device != "reference") {
    return report(not_found("there is no device '{}'; 'tenon devices' lists them", options.device));
  }
  const bool standard_input = options.file == "-";
  std::string bytes;
  if (standard_input) {
    bytes.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    auto read = read_file(options.file);
    if (!read) return report(read.error());
    bytes = std::move(*read);
  }
  const std::string name = standard_input ? "<stdin>" : options.file;
  if (!options.split) return run_one(bytes, name, options);
  int exit_code = 0;
  for (const std::string& part : split_programs(bytes)) {
    if (part.find("func") == std::string::npos) continue;
    exit_code = std::max(exit_code, run_one(part, name, options));
  }
  return exit_code;
}

}  // namespace

void add_run_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a program and print or write its results");
  command
      ->add_option("FILE", options->file,
                   "StableHLO text or portable artifact; '-' is standard input")
      ->required();
  command->add_option("--device", options->device, "Device to run on")->capture_default_str();
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
  command->add_option("--out", options->out_dir, "Write the results to DIR/out_N.npy")
      ->type_name("DIR");
  command->add_option("--entry", options->entry, "Function to run, if not @main")
      ->type_name("NAME");
  command->add_flag("--json", options->json, "Print the results as JSON");
  command->add_flag("--wide", options->wide,
                    "Evaluate floats in a wider type without rounding in between (reference only)");
  command->add_flag("--split", options->split, "Run each part between '// -----' lines by itself");
  command->add_flag("--quiet", options->quiet, "Do not print results");
  command->footer(
      "Programs that call check.* targets exit with 1 and the first mismatch when a check\n"
      "fails.\n\nExample:\n"
      "  tenon run samples/digits_inference/program.mlir --arg 0=@w0.npy --arg 1=random");
  command->callback([options, exit_code] { *exit_code = run(*options); });
}

}  // namespace tenon::tools
