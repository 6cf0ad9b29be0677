#include "tools/rewrite_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tenon::tools {

void add_rule_options(CLI::App& command, hlo::rewrite::Options& options) {
  command
      .add_option("--disable-rule", options.disabled,
                  "Leave out a rewrite rule; 'tenon rules' lists them")
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
  fmt::print(stream, "{:>8} of {} instructions looked at{}\n", statistics.total(),
             statistics.visited, statistics.is_exhausted ? ", then the budget ended" : "");
}

}  // namespace tenon::tools
