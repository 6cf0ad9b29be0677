// `tenon rules`, `tenon idioms` and `tenon schedules`: the rewrite rules, with their hits in
// programs, the idioms, and the schedules of lowering.
#include <nlohmann/json.hpp>

#include "hlo/lower/schedules/schedules.h"
#include "hlo/passes/idioms/idiom.h"
#include "hlo/passes/normalize/refine_shapes.h"
#include "hlo/passes/pass.h"
#include "hlo/passes/rewrite/documentation.h"
#include "tools/cli.h"
#include "tools/compile_options.h"

namespace tenon::tools {
namespace {

struct RulesOptions {
  std::vector<std::string> programs;
  bool json = false;
  bool markdown = false;
};

// Adds the applications of the rules to a program that is compiled for a device. Dynamic programs
// are not counted, because rules need static sizes.
Status count_hits(const std::string& file, hlo::rewrite::Statistics& statistics) {
  TENON_ASSIGN(const std::unique_ptr<hlo::Module> module, load_module(file));
  if (hlo::is_dynamic(*module)) return {};
  hlo::PassOptions options;
  options.rewrites.statistics = &statistics;
  return hlo::run_passes(*module, hlo::optimizing_passes(), options);
}

void print_json_rules(const hlo::rewrite::Statistics& statistics) {
  nlohmann::json document = nlohmann::json::array();
  for (size_t i = 0; i < hlo::rewrite::all_rules().size(); ++i) {
    const hlo::rewrite::Rule& rule = *hlo::rewrite::all_rules()[i];
    document.push_back({{"name", rule.name},
                        {"pattern", rule.pattern},
                        {"where", rule.where.text},
                        {"replacement", rule.replacement},
                        {"exactness", hlo::rewrite::name_of(rule.exactness)},
                        {"because", rule.because},
                        {"hits", i < statistics.hits.size() ? statistics.hits[i] : 0}});
  }
  print_json(document);
}

int rules(const RulesOptions& options) {
  hlo::rewrite::Statistics statistics;
  for (const std::string& file : options.programs) {
    const Status status = count_hits(file, statistics);
    if (!status.ok()) return report(status);
  }
  if (options.markdown) {
    fmt::print("{}", hlo::rewrite::rules_documentation(statistics));
  } else if (options.json) {
    print_json_rules(statistics);
  } else if (!options.programs.empty()) {
    print_rule_hits(stdout, statistics);
  } else {
    for (const hlo::rewrite::Rule* rule : hlo::rewrite::all_rules()) {
      fmt::print("{:<28} {} = {}{}{}\n", rule->name, rule->pattern, rule->replacement,
                 rule->where.text.empty() ? "" : ", where ", rule->where.text);
    }
  }
  return 0;
}

// --- Idioms

struct IdiomsOptions {
  bool json = false;
  bool markdown = false;
};

void idioms(const IdiomsOptions& options) {
  if (options.markdown) {
    fmt::print("{}", hlo::idioms::documentation());
  } else if (options.json) {
    nlohmann::json document = nlohmann::json::array();
    for (const hlo::idioms::Idiom& each : hlo::idioms::all_idioms()) {
      document.push_back({{"name", each.name},
                          {"summary", each.summary},
                          {"signature", each.signature},
                          {"attributes", each.attributes}});
    }
    print_json(document);
  } else {
    for (const hlo::idioms::Idiom& each : hlo::idioms::all_idioms()) {
      fmt::print("{:<26} {:<32} {}\n", each.name, each.signature, each.summary);
    }
  }
}

// --- Schedules

struct SchedulesOptions {
  bool json = false;
  bool markdown = false;
};

void print_json_schedules() {
  nlohmann::json schedules = nlohmann::json::array();
  for (const hlo::lower::Schedule& each : hlo::lower::schedules()) {
    schedules.push_back({{"name", each.name}, {"takes", each.takes}, {"makes", each.makes}});
  }
  nlohmann::json parameters = nlohmann::json::array();
  for (const hlo::lower::TuningParameterInfo& each : hlo::lower::all_tuning_parameters()) {
    parameters.push_back({{"name", each.name},
                          {"meaning", each.meaning},
                          {"least", each.is_flag() ? 0 : 1},
                          {"most", each.most}});
  }
  print_json({{"schedules", schedules}, {"parameters", parameters}});
}

void schedules(const SchedulesOptions& options) {
  if (options.markdown) {
    fmt::print("{}", hlo::lower::schedules_documentation());
  } else if (options.json) {
    print_json_schedules();
  } else {
    for (const hlo::lower::Schedule& each : hlo::lower::schedules()) {
      fmt::print("{:<18} {}\n", each.name, each.takes);
      for (const hlo::lower::TuningParameterInfo& parameter : each.parameters) {
        fmt::print("  {:<16} {}: {}\n", parameter.name, parameter.meaning,
                   parameter.is_flag() ? "0 or 1" : fmt::format("1 to {}", parameter.most));
      }
    }
  }
}

}  // namespace

void add_rules_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RulesOptions>();
  CLI::App* command =
      app.add_subcommand("rules", "List the rewrite rules, or count them in programs");
  command->add_option("PROGRAM", options->programs,
                      "Count how often each rule is applied in these programs");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Print docs/rewrites.md");
  command->footer("--disable-rule NAME of 'tenon opt', 'run' and 'explain' disables a rule.");
  command->callback([options, exit_code] { *exit_code = rules(*options); });
}

void add_idioms_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<IdiomsOptions>();
  CLI::App* command =
      app.add_subcommand("idioms", "List the idioms that Tenon recognizes in programs");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Print docs/idioms.md");
  command->footer(
      "A backend takes an idiom, or a composite that the program states, whole by its answer to\n"
      "plan(); 'tenon opt --passes=inline-calls,decompose,simplify,recognize-idioms --calls=NAME'\n"
      "shows the composites of a program.");
  command->callback([options, exit_code] {
    idioms(*options);
    *exit_code = 0;
  });
}

void add_schedules_command(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<SchedulesOptions>();
  CLI::App* command =
      app.add_subcommand("schedules", "List the schedules of lowering and their parameters");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Print the tables of docs/lowering.md");
  command->footer(
      "The schedule with the least time in the cost model is used. --tune NAME=VALUE of\n"
      "'tenon opt', 'run' and 'explain' sets a parameter; a vendor states parameters in\n"
      "TargetInfo, or in a file beside the plug-in (libchip.tuning, lines NAME = VALUE).");
  command->callback([options, exit_code] {
    schedules(*options);
    *exit_code = 0;
  });
}

}  // namespace tenon::tools
