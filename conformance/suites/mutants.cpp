// mutants: runs the suite on devices that are wrong on purpose, and lists those that no case
// catches.
//
//   mutants [--device interp] [--tier quick] [NAME…]
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "conformance/mutation/mutants.h"
#include "conformance/run/progress.h"
#include "conformance/run/selection.h"
#include "conformance/run/worker.h"
#include "conformance/suites/devices.h"

namespace {

using namespace tenon;               // NOLINT: a program of its own
using namespace tenon::conformance;  // NOLINT

struct MutantsOptions {
  std::string device = "interp";
  std::string tier = "quick";
  std::vector<std::string> names;
  bool list = false;
};

// The cases of a tier, those first that are likely to catch the mutant.
std::vector<size_t> order_for(const Mutant& mutant, Tier tier) {
  Selection all;
  all.tier = tier;
  std::vector<size_t> order;
  if (!mutant.likely.empty()) {
    Selection likely;  // Of every tier: the special values of the op.
    likely.patterns = mutant.likely;
    order = select(all_cases(), likely);
  }
  for (const size_t each : select(all_cases(), all)) order.push_back(each);
  return order;
}

// The name of the first case that fails on the mutant; empty if none does.
Result<std::string> caught_by(const Mutant& mutant, const MutantsOptions& options, Tier tier) {
  TENON_ASSIGN(auto sound, backend_named(options.device));
  TENON_ASSIGN(auto wrong, make_mutant(std::move(sound), mutant.name));
  auto target = make_device_target({wrong, 0});
  if (!target) return "the device does not open";
  WorkerOptions worker;
  worker.reduce = false;
  for (const size_t each : order_for(mutant, tier)) {
    const ConformanceCase& one = all_cases()[each];
    const CaseResult result = run_case(one, **target, worker);
    if (result.outcome == Outcome::kHarnessError)
      return internal_error("{}: {}", one.name, result.message);
    if (is_failure(result)) return one.name;
  }
  return std::string();
}

int run(const MutantsOptions& options) {
  const auto tier = tier_from_name(options.tier);
  if (!tier) {
    fmt::print(stderr, "mutants: {}\n", tier.error().to_string());
    return 2;
  }
  std::vector<const Mutant*> chosen;
  for (const Mutant& each : all_mutants()) {
    const bool named = options.names.empty() ||
                       std::ranges::any_of(options.names, [&](const std::string& pattern) {
                         return matches(pattern, each.name);
                       });
    if (named) chosen.push_back(&each);
  }
  if (options.list) {
    for (const Mutant* each : chosen) fmt::print("{}: {}\n", each->name, each->text);
    return 0;
  }
  SuiteProgress progress("mutants", static_cast<int64_t>(chosen.size()));
  int64_t done = 0;
  int64_t survived = 0;
  int64_t idle = 0;
  for (const Mutant* each : chosen) {
    const int64_t before = mutations_made();
    const auto caught = caught_by(*each, options, *tier);
    if (!caught) {
      fmt::print(stderr, "FAIL {}: {}\n", each->name, caught.error().to_string());
      return 1;
    }
    const bool took_part = mutations_made() > before;
    if (!took_part) ++idle;
    if (caught->empty() && took_part) ++survived;
    progress.clear();
    if (caught->empty()) {
      fmt::print("{} {}: {}\n", took_part ? "SURVIVES" : "IDLE", each->name, each->text);
    }
    progress.done(++done);
  }
  const auto active = static_cast<int64_t>(chosen.size()) - idle;
  fmt::print("{} mutants changed something, {} caught ({:.1f} %), {} survive; {} changed nothing\n",
             active, active - survived,
             active == 0
                 ? 0.0
                 : 100.0 * static_cast<double>(active - survived) / static_cast<double>(active),
             survived, idle);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs the conformance suite on devices that are wrong on purpose"};
  MutantsOptions options;
  app.add_option("name", options.names, "mutants, with * and ?; default: all");
  app.add_option("--device", options.device, "the device that is made wrong")
      ->default_str("interp");
  app.add_option("--tier", options.tier, "cases: smoke, quick or full")->default_str("quick");
  app.add_flag("--list", options.list, "print the mutants and what is wrong with each");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
