// `tenon conform`: the conformance suite.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "conformance/cases/programs/data.h"
#include "conformance/measure/measure.h"
#include "conformance/report/console.h"
#include "conformance/report/formats.h"
#include "conformance/report/submission.h"
#include "conformance/run/progress.h"
#include "conformance/run/selection.h"
#include "conformance/run/suite.h"
#include "conformance/run/worker.h"
#include "conformance/target/pjrt_target.h"
#include "conformance/terms/json_file.h"
#include "core/backend/registry/registry.h"
#include "core/base/digest.h"
#include "core/base/file.h"
#include "tools/cli.h"
#include "tools/device_options.h"

namespace tenon::tools {
namespace {

namespace conf = tenon::conformance;

struct ConformOptions {
  DeviceOptions device;
  std::string pjrt;
  std::vector<std::string> pjrt_options;
  std::vector<std::string> patterns;
  std::vector<std::string> excluded;
  std::string tier;  ///< Empty: that of tier_of.
  std::string shard = "1/1";
  int jobs = 0;
  uint64_t seed = 0;
  double timeout = 60;
  std::string data;
  bool list = false;
  bool left_out = false;
  bool no_reduce = false;
  bool quiet = false;
  bool verbose = false;
  std::string profile;
  std::string declaration;
  std::string waivers;
  std::string json;
  std::string junit;
  std::string html;
  std::string submission;
  std::string resume;
  bool measure = false;
  std::string target_info;
};

volatile bool stop_requested = false;
void request_stop(int) { stop_requested = true; }

// "/opt/libnpu.so:1" names a plug-in by its file.
bool is_path(const DeviceOptions& options) { return options.device.find('/') != std::string::npos; }
std::string path_of(const DeviceOptions& options) {
  const auto name = backend::parse_device_name(options.device);
  return name ? name->backend : options.device;
}

Result<std::vector<conf::PjrtOption>> pjrt_options_of(const ConformOptions& options) {
  std::vector<conf::PjrtOption> list;
  for (const std::string& text : options.pjrt_options) {
    TENON_ASSIGN(conf::PjrtOption option, conf::parse_pjrt_option(text));
    list.push_back(std::move(option));
  }
  return list;
}

Result<std::unique_ptr<conf::Target>> open_target(const ConformOptions& options) {
  if (!options.pjrt.empty()) {
    TENON_ASSIGN(const auto pjrt_options, pjrt_options_of(options));
    return conf::make_pjrt_target(options.pjrt, pjrt_options);
  }
  if (options.device.device == "reference") return conf::make_evaluator_target();
  TENON_ASSIGN(ChosenDevice chosen, choose_device(options.device));
  const std::string plugin = is_path(options.device) ? path_of(options.device) : "";
  return conf::make_device_target({std::move(chosen.backend), chosen.index, plugin});
}

// The options that name the target.
std::vector<std::string> target_arguments(const ConformOptions& options) {
  std::vector<std::string> arguments = {"--device", options.device.device};
  if (!options.pjrt.empty()) arguments = {"--pjrt", options.pjrt};
  for (const std::string& each : options.pjrt_options) {
    arguments.insert(arguments.end(), {"--pjrt-option", each});
  }
  if (options.device.layers) arguments.push_back("--layer=" + *options.device.layers);
  return arguments;
}

// As a shell reads it.
std::string quoted(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// The command that runs the cases again, but for the patterns that chose them.
std::string command_of(const ConformOptions& options) {
  std::string command = "tenon conform";
  for (const std::string& argument : target_arguments(options)) command += " " + quoted(argument);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", name, quoted(value));
  };
  add("--data", options.data);
  add("--tier", options.tier);
  add("--profile", options.profile);
  for (const std::string& each : options.excluded) add("--exclude", each);
  if (options.seed != 0) command += fmt::format(" --seed {}", options.seed);
  if (options.timeout != ConformOptions().timeout)
    command += fmt::format(" --timeout {:g}", options.timeout);
  add("--declaration", options.declaration);
  add("--waivers", options.waivers);
  return command;
}

// The cases of a folder of programs, which are kept in `data`, or of the suite.
Result<const std::vector<conf::ConformanceCase>*> cases_of(
    const ConformOptions& options, std::vector<conf::ConformanceCase>& data) {
  if (options.data.empty()) return &conf::all_cases();
  TENON_ASSIGN(data, conf::data_cases(options.data));
  return &data;
}

// The interfaces that the target has.
conf::CaseNeeds interfaces_of(const ConformOptions& options) {
  using enum conf::CaseNeeds;
  if (!options.pjrt.empty()) return kNothing;
  if (is_path(options.device)) return kPlugin;
  return options.device.device == "reference" ? kNothing : kInterface;
}

// A list has every name, a run the cases that depend on the device alone.
std::string tier_of(const ConformOptions& options) {
  if (!options.tier.empty()) return options.tier;
  return options.list ? "extended" : "full";
}

Error usage_error(Status error) { return Error(std::move(error).in_stage(kUsageStage)); }

// Wrong numbers, and reports that cannot be written: both are found before the run.
Status check_options(const ConformOptions& options) {
  if (!(options.timeout > 0)) return invalid_argument("--timeout is more than 0 seconds");
  if (options.jobs < 0)
    return invalid_argument("--jobs is a number of processes, not {}", options.jobs);
  for (const std::string& file : {options.json, options.junit, options.html}) {
    const auto folder = std::filesystem::path(file).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder))
      return not_found("{}: there is no folder {}", file, folder.string());
  }
  return {};
}

Result<conf::Selection> selection_of(const ConformOptions& options) {
  conf::Selection selection;
  selection.patterns = options.patterns;
  selection.excluded = options.excluded;
  const auto tier = conf::tier_from_name(tier_of(options));
  if (!tier) return usage_error(tier.error());
  selection.tier = *tier;
  if (Status shard = conf::parse_shard(options.shard, selection); !shard.ok())
    return usage_error(std::move(shard));
  selection.has = options.list ? conf::CaseNeeds::kPlugin : interfaces_of(options);
  if (!options.profile.empty()) {
    TENON_ASSIGN(selection.profile, conf::find_profile(options.profile));
  }
  return selection;
}

Result<conf::Terms> terms_of(const ConformOptions& options) {
  conf::Terms terms;
  if (!options.declaration.empty()) {
    TENON_ASSIGN(terms.declaration, conf::read_declaration(options.declaration));
  }
  if (!options.waivers.empty()) {
    TENON_ASSIGN(terms.waivers, conf::read_waivers(options.waivers));
    Status valid = conf::check_expiry(terms.waivers, conf::today());
    if (!valid.ok()) return Error(std::move(valid).with_context(options.waivers));
  }
  return terms;
}

// The report, as far as it is known before the cases are made, which takes a moment.
Result<conf::Report> report_before(const ConformOptions& options) {
  conf::Report report;
  report.tenon = TENON_VERSION;
  report.has = interfaces_of(options);
  report.command = command_of(options);
  report.date = conf::to_string(conf::today());
  report.seed = options.seed;
  report.tier = tier_of(options);
  report.profile = options.profile;
  report.filtered = !options.patterns.empty() || !options.excluded.empty() ||
                    options.shard != "1/1" || !options.data.empty();
  TENON_ASSIGN(report.terms, terms_of(options));
  if (!options.submission.empty()) TENON_TRY(conf::check_submittable(report));
  return report;
}

// A worker: a copy of this process, with the cases that this one made.
int run_worker(const ConformOptions& options, const std::vector<conf::ConformanceCase>& cases,
               std::span<const conf::RelaxedBound> relaxed) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  conf::WorkerOptions worker;
  worker.seed = options.seed;
  worker.reduce = !options.no_reduce;
  worker.relaxed = {relaxed.begin(), relaxed.end()};
  return conf::serve(cases, worker, [&] { return open_target(options); });
}

conf::SuiteOptions suite_options(const ConformOptions& options,
                                 const std::vector<conf::ConformanceCase>& cases,
                                 const conf::Report& report) {
  conf::SuiteOptions suite;
  suite.runner.worker = [&options, &cases, relaxed = report.terms.relaxed()] {
    return run_worker(options, cases, relaxed);
  };
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  suite.runner.jobs = options.jobs > 0 ? options.jobs : cores;
  suite.runner.timeout = options.timeout;
  suite.identity.tenon = report.tenon;
  suite.identity.seed = report.seed;
  std::string bounds;
  for (const conf::RelaxedBound& each : report.terms.relaxed()) {
    bounds += fmt::format("{} {} {}\n", each.op, each.type, each.ulp);
  }
  suite.identity.bounds = serial::digest_of(bounds);
  const std::string plugin = !options.pjrt.empty()     ? options.pjrt
                             : is_path(options.device) ? path_of(options.device)
                                                       : "";
  // A file that cannot be read is told when the device opens.
  if (const auto bytes = read_file(plugin); !plugin.empty() && bytes)
    suite.identity.plugin = serial::digest_of(*bytes);
  if (!options.json.empty()) suite.journal = conf::journal_path(options.json);
  suite.resume = !options.resume.empty();
  return suite;
}

// Prints failures as they come: a line each, or in full.
class FailurePrinter {
 public:
  FailurePrinter(const ConformOptions& options, const conf::Report& report, size_t cases)
      : options_(options), report_(report), progress_("cases", static_cast<int64_t>(cases)) {}

  void take(conf::CaseRecord record) {
    conf::apply_terms(report_.terms, record);
    if (conf::is_failure(record.result)) print(record);
    progress_.done(++done_, failed_ == 0 ? "" : fmt::format("{} failed", failed_));
  }

 private:
  void print(const conf::CaseRecord& record) {
    constexpr size_t kShown = 10;
    if (failed_++ >= kShown && !options_.verbose) return;
    if (options_.quiet) return;
    progress_.clear();
    const bool colour = use_colour(stdout);
    fmt::print("{}", options_.verbose ? conf::failure_text(record, report_.command, colour) + "\n"
                                      : conf::failure_line(record, colour));
    std::fflush(stdout);
  }

  const ConformOptions& options_;
  const conf::Report& report_;
  conf::SuiteProgress progress_;
  int64_t done_ = 0;
  size_t failed_ = 0;
};

Result<conf::Report> run_and_judge(const ConformOptions& options, conf::Report report,
                                   const std::vector<conf::ConformanceCase>& cases,
                                   const std::vector<size_t>& chosen) {
  report.suite = conf::suite_digest(cases);
  std::vector<std::string> names;
  for (const conf::ConformanceCase& each : cases) names.push_back(each.name);
  report.unused_waivers = conf::unused_waivers(report.terms, names);
  conf::SuiteOptions suite = suite_options(options, cases, report);
  const auto begin = std::chrono::steady_clock::now();
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  FailurePrinter printer(options, report, chosen.size());
  TENON_ASSIGN(conf::SuiteResult ran,
               conf::run_suite(
                   cases, chosen, std::move(suite),
                   [&](const conf::CaseRecord& record) { printer.take(record); }, &stop_requested));
  if (!ran.journal.ok()) fmt::print(stderr, "warning: {}\n", ran.journal.to_string());
  report.device = std::move(ran.summary.device);
  report.counts_steps = ran.summary.counts_steps;
  report.interrupted = ran.summary.interrupted;
  report.records = std::move(ran.records);
  for (conf::CaseRecord& each : report.records) conf::apply_terms(report.terms, each);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

Status write_reports(const ConformOptions& options, const conf::Report& report) {
  if (!options.json.empty()) {
    TENON_TRY(conf::write_json_file(options.json, conf::to_json(report)));
  }
  if (!options.junit.empty()) TENON_TRY(write_file(options.junit, conf::to_junit(report)));
  if (!options.html.empty()) TENON_TRY(write_file(options.html, conf::to_html(report)));
  if (!options.submission.empty() && !report.interrupted) {
    TENON_TRY(conf::write_submission(options.submission, report));
  }
  return {};
}

// Removes the journal of a run that has ended; else says how the run goes on.
void end_journal(const ConformOptions& options, const conf::Report& report) {
  if (options.json.empty()) return;
  const std::string journal = conf::journal_path(options.json);
  if (report.interrupted) {
    if (!options.submission.empty()) fmt::print("no submission is written of a part of a run\n");
    fmt::print("{} has the results so far: --resume {} runs the other cases\n", journal,
               options.json);
    return;
  }
  std::error_code ignored;
  std::filesystem::remove(journal, ignored);
}

Result<int> conform(ConformOptions options) {
  if (!options.resume.empty()) {
    if (!options.json.empty() && options.json != options.resume) {
      return usage_error(invalid_argument("--resume and --json name different files"));
    }
    options.json = options.resume;
  }
  if (Status valid = check_options(options); !valid.ok()) return usage_error(std::move(valid));
  TENON_ASSIGN(const conf::Selection selection, selection_of(options));
  TENON_TRY(pjrt_options_of(options));
  conf::Report before;
  if (!options.list && !options.left_out) {
    TENON_ASSIGN(before, report_before(options));
  }
  std::vector<conf::ConformanceCase> data;
  TENON_ASSIGN(const std::vector<conf::ConformanceCase>* const of, cases_of(options, data));
  const std::vector<conf::ConformanceCase>& cases = *of;
  if (options.left_out) {
    for (const conf::LeftOut& each : conf::case_list().left_out)
      fmt::print("{}: {}\n", each.cell, each.reason);
    return 0;
  }
  const std::vector<size_t> chosen = conf::select(cases, selection);
  if (options.list) {
    for (const size_t i : chosen) fmt::print("{}\n", cases[i].name);
    return 0;
  }
  if (chosen.empty()) {
    conf::Selection extended = selection;
    extended.tier = conf::Tier::kExtended;
    return usage_error(invalid_argument(
        "no case matches{}; tenon conform --list prints their names",
        conf::select(cases, extended).empty() ? ""
                                              : fmt::format(" in the tier {}", tier_of(options))));
  }
  TENON_ASSIGN(const conf::Report report, run_and_judge(options, std::move(before), cases, chosen));
  fmt::print("{}", conf::summary_text(report, use_colour(stdout), options.verbose));
  TENON_TRY(write_reports(options, report));
  end_journal(options, report);
  fmt::print("{} in {:.1f} s\n", conf::has_passed(report) ? "conformant" : "NOT conformant",
             report.seconds);
  return conf::has_passed(report) ? 0 : kExitError;
}

// Rates in the form of the file beside a plug-in; parameters that the file has stay there.
Status write_rates(const std::string& path, const backend::DeviceRates& rates) {
  backend::TuningFile file;
  if (std::filesystem::exists(path)) {
    TENON_ASSIGN(const std::string text, read_file(path));
    TENON_ASSIGN(file, backend::parse_tuning_file(text));
  }
  file.rates = rates;
  return write_file(path, backend::to_string(file));
}

Result<int> measure_device(const ConformOptions& options) {
  TENON_ASSIGN(ChosenDevice chosen, choose_device(options.device));
  TENON_ASSIGN(
      const conf::Measurement measured,
      conf::measure({std::move(chosen.backend), chosen.index}, {}, [&](const std::string& name) {
        if (!options.quiet) fmt::print(stderr, "measuring {}\n", name);
      }));
  fmt::print("{}", conf::table_of(measured));
  if (!options.json.empty())
    TENON_TRY(conf::write_json_file(options.json, conf::to_json(measured)));
  if (!options.target_info.empty())
    TENON_TRY(write_rates(options.target_info, conf::rates_of(measured)));
  return 0;
}

void add_report_options(CLI::App& command, ConformOptions& options) {
  command.add_option("--json", options.json, "write the report to this file");
  command.add_option("--junit", options.junit, "write JUnit XML, for CI");
  command.add_option("--html", options.html, "write a page for people");
  command.add_option("--submission", options.submission,
                     "write the run to this folder, for `tenon conform verify`");
  command.add_option("--resume", options.resume,
                     "go on with the run that was interrupted before it wrote this JSON report");
}

}  // namespace

void add_conform_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<ConformOptions>();
  CLI::App* command = app.add_subcommand("conform", "Run the conformance suite on a device");
  command->add_option("pattern", options->patterns,
                      "names of cases, with * and ?: 'op/add/*'; default: all");
  CLI::Option* const device =
      command
          ->add_option("--device", options->device.device,
                       "a device of `tenon devices`, or the path of a plug-in")
          ->default_str("interp");
  CLI::Option* const pjrt = command->add_option("--pjrt", options->pjrt,
                                                "in place of a device, the path of a PJRT plug-in");
  pjrt->excludes(device);
  command
      ->add_option("--pjrt-option", options->pjrt_options,
                   "NAME=TEXT or NAME:TYPE=VALUE (string, int, float, bool) for the plug-in's "
                   "client; repeatable")
      ->allow_extra_args(false)
      ->needs(pjrt);
  add_layer_option(*command, options->device);
  command->add_option("--exclude", options->excluded, "leave out cases that match; repeatable")
      ->allow_extra_args(false);  // A pattern may follow.
  command
      ->add_option("--tier", options->tier,
                   "smoke (under 10 s), quick (under 2 min), full, extended (speed and large "
                   "arrays too); the "
                   "first two prove nothing")
      ->default_str("full");
  command->add_option("--shard", options->shard, "run part I of N: I/N")->default_str("1/1");
  command->add_option("--jobs", options->jobs, "worker processes; default: one a core");
  command->add_option("--seed", options->seed, "of the values")->default_str("0");
  command->add_option("--timeout", options->timeout, "seconds that a case may take")
      ->default_str("60");
  command->add_option("--data", options->data,
                      "run the StableHLO test programs of this folder instead of the suite");
  command->add_flag("--list", options->list, "print the names of the cases, one a line");
  command->add_flag("--left-out", options->left_out,
                    "print the ops, types and variants that no case covers, with the reason");
  command->add_flag("--no-reduce", options->no_reduce, "do not reduce the programs that fail");
  command->add_flag("--quiet", options->quiet, "print no failures as they come");
  command->add_flag("--verbose", options->verbose, "print each failure in full, and slow cases");
  command->add_option("--profile", options->profile,
                      "only the cases of minimal, inference, training or full, or of a file");
  command->add_option("--declaration", options->declaration,
                      "JSON: what the device does not support, bounds that it relaxes");
  command->add_option("--waivers", options->waivers, "JSON: failures that are known");
  add_report_options(*command, *options);
  CLI::Option* measure = command->add_flag(
      "--measure", options->measure, "measure the device's rates by classes of ops; runs no case");
  measure->excludes(pjrt);
  command
      ->add_option("--target-info", options->target_info,
                   "write the rates to this file, as one beside the plug-in states them")
      ->needs(measure);
  add_conform_checks(*command, exit_code);
  command->callback([options, command, exit_code] {
    if (!command->get_subcommands().empty()) return;
    if (options->device.device.empty()) options->device.device = "interp";
    const auto result = options->measure ? measure_device(*options) : conform(*options);
    *exit_code = result ? *result : report(result.error());
  });
}

}  // namespace tenon::tools
