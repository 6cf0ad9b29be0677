#include "tools/compile_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/backend/target.h"
#include "tools/cli.h"

namespace tenon::tools {

void add_rule_options(CLI::App& command, hlo::rewrite::Options& options) {
  command
      .add_option("--disable-rule", options.disabled,
                  "Disable a rewrite rule; 'tenon rules' lists them")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check([](const std::string& name) {
        return hlo::rewrite::find_rule(name) != nullptr
                   ? ""
                   : fmt::format("there is no rule '{}'; 'tenon rules' lists them", name);
      })
      ->type_name("RULE");
}

void print_rule_hits(std::FILE* stream, const hlo::rewrite::Statistics& statistics) {
  std::vector<std::pair<int64_t, std::string_view>> hits;
  for (size_t i = 0; i < statistics.hits.size(); ++i) {
    if (statistics.hits[i] > 0)
      hits.emplace_back(statistics.hits[i], hlo::rewrite::all_rules()[i]->name);
  }
  std::ranges::stable_sort(hits, std::greater(), &std::pair<int64_t, std::string_view>::first);
  for (const auto& [count, name] : hits) fmt::print(stream, "{:>8} {}\n", count, name);
  fmt::print(stream, "{:>8} of {} instructions visited{}\n", statistics.total(), statistics.visited,
             statistics.is_exhausted ? ", then the budget ended" : "");
}

void add_tuning_options(CLI::App& command, std::vector<std::string>& entries) {
  command
      .add_option("--tune", entries,
                  "Set a tuning parameter, or a schedule to 0 (never) or 1 (if it fits); "
                  "'tenon schedules' lists them")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("NAME=VALUE");
}

Status set_tuning(const std::vector<std::string>& entries, hlo::lower::TuningParameters& tuning) {
  std::vector<hlo::lower::TuningEntry> checked;
  for (const std::string& entry : entries) {
    const auto parsed = backend::parse_tuning(entry);
    if (!parsed || parsed->size() != 1) {
      return Status(invalid_argument("--tune {}: expected NAME=VALUE", entry))
          .in_stage(kUsageStage);
    }
    checked.emplace_back(parsed->front().name, parsed->front().value);
  }
  Status status = hlo::lower::check(checked);
  if (!status.ok()) return std::move(status).in_stage(kUsageStage);
  for (const auto& [name, value] : checked) tuning.set(name, value);
  return {};
}

}  // namespace tenon::tools
