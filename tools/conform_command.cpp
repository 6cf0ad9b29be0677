// `tenon conform`: the conformance suite.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "conformance/cases/programs/data.h"
#include "conformance/report/report.h"
#include "conformance/run/progress.h"
#include "conformance/run/runner.h"
#include "conformance/run/selection.h"
#include "conformance/run/worker.h"
#include "core/backend/registry/registry.h"
#include "core/base/file.h"
#include "tools/cli.h"
#include "tools/device_options.h"

namespace tenon::tools {
namespace {

namespace conf = tenon::conformance;

struct ConformOptions {
  DeviceOptions device;
  std::vector<std::string> patterns;
  std::vector<std::string> excluded;
  std::string tier = "full";
  std::string shard = "1/1";
  int jobs = 0;
  uint64_t seed = 0;
  double timeout = 60;
  std::string data;
  bool list = false;
  bool left_out = false;
  bool no_reduce = false;
  bool quiet = false;
  std::string json;
  bool worker = false;
};

volatile bool stop_requested = false;
void request_stop(int) { stop_requested = true; }

// "/opt/libnpu.so:1" names a plug-in by its file.
bool is_path(const DeviceOptions& options) { return options.device.find('/') != std::string::npos; }
std::string path_of(const DeviceOptions& options) {
  const auto name = backend::parse_device_name(options.device);
  return name ? name->backend : options.device;
}

Result<std::unique_ptr<conf::Target>> open_target(const DeviceOptions& options) {
  if (options.device == "reference") return conf::make_evaluator_target();
  TENON_ASSIGN(ChosenDevice chosen, choose_device(options));
  const std::string plugin = is_path(options) ? path_of(options) : "";
  return conf::make_device_target({std::move(chosen.backend), chosen.index, plugin});
}

Result<std::vector<std::string>> worker_command(const ConformOptions& options) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return internal_error("/proc/self/exe: {}", error.message());
  std::vector<std::string> command = {self,
                                      "conform",
                                      "--worker",
                                      "--device",
                                      options.device.device,
                                      "--seed",
                                      std::to_string(options.seed)};
  if (options.device.layers) command.push_back("--layer=" + *options.device.layers);
  if (!options.data.empty()) command.push_back("--data=" + options.data);
  if (options.no_reduce) command.emplace_back("--no-reduce");
  return command;
}

// The command that runs the cases again.
std::string command_of(const ConformOptions& options) {
  std::string command = "tenon conform --device " + options.device.device;
  if (options.device.layers) command += " --layer=" + *options.device.layers;
  if (!options.data.empty()) command += " --data " + options.data;
  if (options.seed != 0) command += fmt::format(" --seed {}", options.seed);
  return command;
}

// The cases of the suite, or of a folder of programs.
Result<std::vector<conf::ConformanceCase>> cases_of(const ConformOptions& options) {
  if (options.data.empty()) return conf::all_cases();
  return conf::data_cases(options.data);
}

Result<conf::Selection> selection_of(const ConformOptions& options) {
  conf::Selection selection;
  selection.patterns = options.patterns;
  selection.excluded = options.excluded;
  TENON_ASSIGN(selection.tier, conf::tier_from_name(options.tier));
  TENON_TRY(conf::parse_shard(options.shard, selection));
  using enum conf::CaseNeeds;
  const bool is_reference = options.device.device == "reference";
  const bool has_plugin = options.list || is_path(options.device);
  selection.has = has_plugin ? kPlugin : is_reference ? kNothing : kInterface;
  return selection;
}

Result<conf::Report> run_suite(const ConformOptions& options,
                               const std::vector<conf::ConformanceCase>& cases,
                               const std::vector<size_t>& chosen) {
  std::vector<conf::Request> requests;
  std::map<std::string, size_t> order;
  for (const size_t i : chosen) {
    requests.push_back({i, cases[i].name});
    order[cases[i].name] = i;
  }
  conf::RunnerOptions runner;
  TENON_ASSIGN(runner.worker, worker_command(options));
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  runner.jobs = options.jobs > 0 ? options.jobs : cores;
  runner.timeout = options.timeout;
  conf::Report report;
  report.tenon = TENON_VERSION;
  report.command = command_of(options);
  report.seed = options.seed;
  report.tier = options.tier;
  const bool colour = use_colour(stdout);
  conf::SuiteProgress progress("cases", static_cast<int64_t>(requests.size()));
  size_t failed = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  const auto take = [&](conf::CaseRecord record) {
    if (conf::is_failure(record.result.outcome) && failed++ < 10 && !options.quiet) {
      progress.clear();
      fmt::print("{}\n", conf::failure_text(record, report.command, colour));
      std::fflush(stdout);
    }
    report.records.push_back(std::move(record));
    progress.done(static_cast<int64_t>(report.records.size()),
                  failed == 0 ? "" : fmt::format("{} failed", failed));
  };
  TENON_ASSIGN(const conf::RunnerSummary summary,
               conf::run_cases(requests, runner, take, &stop_requested));
  report.device = summary.device;
  report.interrupted = summary.interrupted;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::ranges::sort(report.records, {},
                    [&](const conf::CaseRecord& record) { return order.at(record.name); });
  return report;
}

Status write_json(const std::string& path, const nlohmann::json& document) {
  return write_file(path,
                    document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Result<int> conform(const ConformOptions& options) {
  TENON_ASSIGN(const conf::Selection selection, selection_of(options));
  TENON_ASSIGN(const std::vector<conf::ConformanceCase> cases, cases_of(options));
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
    Status error = invalid_argument("no case matches; tenon conform --list prints their names");
    return Error(std::move(error).in_stage(kUsageStage));
  }
  TENON_ASSIGN(const conf::Report report, run_suite(options, cases, chosen));
  if (!options.json.empty()) TENON_TRY(write_json(options.json, conf::to_json(report)));
  fmt::print("{}", conf::summary_text(report, use_colour(stdout)));
  fmt::print("{} in {:.1f} s\n", conf::has_passed(report) ? "conformant" : "NOT conformant",
             report.seconds);
  return conf::has_passed(report) ? 0 : kExitError;
}

int run_worker(const ConformOptions& options) {
  conf::WorkerOptions worker;
  worker.seed = options.seed;
  worker.reduce = !options.no_reduce;
  const auto cases = cases_of(options);
  if (!cases) return report(cases.error());
  return conf::serve(*cases, worker, [&] { return open_target(options.device); });
}

}  // namespace

void add_conform_command(CLI::App& app, int* exit_code) {
  const auto options = std::make_shared<ConformOptions>();
  CLI::App* command = app.add_subcommand("conform", "Run the conformance suite on a device");
  command->add_option("pattern", options->patterns,
                      "names of cases, with * and ?: 'op/add/*'; default: all");
  command
      ->add_option("--device", options->device.device,
                   "a device of `tenon devices`, or the path of a plug-in")
      ->default_str("interp");
  add_layer_option(*command, options->device);
  command->add_option("--exclude", options->excluded, "leave out cases that match; repeatable");
  command
      ->add_option("--tier", options->tier,
                   "smoke (under 10 s), quick (under 2 min), full; the first two prove nothing")
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
  command->add_flag("--quiet", options->quiet, "print no failures, only the counts");
  command->add_option("--json", options->json, "write the report to this file");
  command->add_flag("--worker", options->worker)->group("");
  command->callback([options, exit_code] {
    if (options->device.device.empty()) options->device.device = "interp";
    if (options->worker) {
      *exit_code = run_worker(*options);
      return;
    }
    const auto result = conform(*options);
    *exit_code = result ? *result : report(result.error());
  });
}

}  // namespace tenon::tools
