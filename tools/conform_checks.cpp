// `tenon conform verify` and `tenon conform diff`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "conformance/report/difference.h"
#include "conformance/report/submission.h"
#include "tools/cli.h"

namespace tenon::tools {
namespace {

namespace conf = tenon::conformance;

Result<int> verify(const std::string& folder) {
  TENON_ASSIGN(const conf::SubmissionCheck found, conf::verify_submission(folder, TENON_VERSION));
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(kShown, found.faults.size()); ++i) {
    fmt::print("{}\n", found.faults[i]);
  }
  if (found.faults.size() > kShown) fmt::print("and {} more\n", found.faults.size() - kShown);
  fmt::print("{}: {}\n", found.statement,
             found.faults.empty() ? "verified" : fmt::format("{} faults", found.faults.size()));
  return found.faults.empty() ? 0 : kExitError;
}

struct DiffOptions {
  std::string before;
  std::string after;
  bool json = false;
};

Result<int> diff(const DiffOptions& options) {
  TENON_ASSIGN(const conf::Report before, conf::read_report(options.before));
  TENON_ASSIGN(const conf::Report after, conf::read_report(options.after));
  const conf::ReportDifference difference = conf::difference_of(before, after);
  if (options.json) {
    print_json(conf::to_json(difference));
  } else {
    fmt::print("{}", conf::difference_text(difference));
  }
  return difference.count_worse() == 0 ? 0 : kExitError;
}

int exit_status(const Result<int>& result) { return result ? *result : report(result.error()); }

}  // namespace

void add_conform_checks(CLI::App& conform, int* exit_code) {
  CLI::App* const verifying =
      conform.add_subcommand("verify", "Check a submission, without its device");
  const auto folder = std::make_shared<std::string>();
  verifying->add_option("folder", *folder, "what --submission wrote")->required();
  verifying->callback([folder, exit_code] { *exit_code = exit_status(verify(*folder)); });

  CLI::App* const comparing = conform.add_subcommand(
      "diff", "Compare two JSON reports; the exit status is 1 if anything is worse");
  const auto options = std::make_shared<DiffOptions>();
  comparing->add_option("before", options->before, "a report of --json")->required();
  comparing->add_option("after", options->after, "another one")->required();
  comparing->add_flag("--json", options->json, "print the difference as JSON");
  comparing->callback([options, exit_code] { *exit_code = exit_status(diff(*options)); });
}

}  // namespace tenon::tools
