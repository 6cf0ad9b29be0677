// mutants: runs the suite on devices that are wrong on purpose, and lists those that no case
// catches.
//
//   mutants [--device interp] [--tier quick] [NAME…]
//   mutants --named          those that the suite must catch; fails unless it does
//   mutants --insensitive    lists the cases that no mutant fails
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>
#include <thread>

#include "conformance/mutation/mutants.h"
#include "conformance/run/progress.h"
#include "conformance/run/selection.h"
#include "conformance/run/worker.h"
#include "conformance/suites/forked.h"
#include "conformance/suites/insensitive.h"

namespace {

using namespace tenon;               // NOLINT: a program of its own
using namespace tenon::conformance;  // NOLINT

struct MutantsOptions {
  std::string device = "interp";
  std::string tier = "quick";
  std::vector<std::string> names;
  std::vector<std::string> cases;
  int jobs = 0;
  size_t every = 1;
  double timeout = 60;
  bool list = false;
  bool named = false;
  bool insensitive = false;
  bool verbose = false;
};

struct Verdict {
  std::string caught_by;  // A case; empty if none fails.
  std::string error;      // The suite itself failed.
  bool took_part = false;
  int64_t refused = 0;
};

// The cases that are likely to catch the mutant, of every tier, then those of the tier.
std::vector<size_t> order_for(const Mutant& mutant, const MutantsOptions& options, Tier tier) {
  std::vector<size_t> order;
  for (const std::string& pattern : mutant.likely) {
    Selection likely;
    likely.patterns = {pattern};
    const std::vector<size_t> chosen = select(all_cases(), likely);
    order.insert(order.end(), chosen.begin(), chosen.end());
  }
  if (options.named) return order;
  Selection rest;
  rest.patterns = options.cases;
  rest.tier = tier;
  const std::vector<size_t> chosen = select(all_cases(), rest);
  order.insert(order.end(), chosen.begin(), chosen.end());
  return order;
}

// Lines: "case NAME" before each; at the end "caught", "error TEXT" or "passed", and before it
// "mutations CHANGED REFUSED".
void run_cases_on(const Result<std::shared_ptr<backend::Backend>>& backend, uint32_t queues,
                  const std::vector<size_t>& order, const WriteLine& write) {
  const auto finish = [&](const std::string& line) {
    write(fmt::format("mutations {} {}", mutations_made(), mutations_refused()));
    write(line);
  };
  if (!backend) return finish("error " + backend.error().to_string());
  const auto devices = (*backend)->devices();
  if (devices && devices->front().target.queues < queues) return finish("passed");  // It is idle.
  write("case open");
  const auto target = make_device_target({*backend, 0});
  if (!target) return finish("caught");
  WorkerOptions worker;
  worker.reduce = false;
  std::set<size_t> done;
  for (const size_t each : order) {
    if (!done.insert(each).second) continue;
    const ConformanceCase& one = all_cases()[each];
    write("case " + one.name);
    const CaseResult result = run_case(one, **target, worker);
    if (result.outcome == Outcome::kHarnessError) return finish("error " + result.message);
    if (is_failure(result)) return finish("caught");
  }
  finish("passed");
}

Verdict verdict_of(const JobResult& job) {
  Verdict verdict;
  std::string at;
  verdict.took_part = job.end != JobEnd::kDone;
  for (const std::string& line : job.lines) {
    if (line.starts_with("case ")) at = line.substr(5);
    if (line.starts_with("error ")) verdict.error = at + ": " + line.substr(6);
    if (line == "caught") verdict.caught_by = at;
    long long changed = 0;
    long long refused = 0;
    if (std::sscanf(line.c_str(), "mutations %lld %lld", &changed, &refused) != 2) continue;
    verdict.took_part |= changed > 0;
    verdict.refused = refused;
  }
  if (job.end != JobEnd::kDone)
    verdict.caught_by = fmt::format("{} ({})", at, job.end == JobEnd::kCrashed ? "crash" : "hang");
  return verdict;
}

std::vector<const Mutant*> chosen_mutants(const MutantsOptions& options) {
  std::vector<const Mutant*> chosen;
  if (options.named) {
    for (const NamedMutant& each : named_mutants()) chosen.push_back(find_mutant(each.mutant));
    return chosen;
  }
  for (const Mutant& each : all_mutants()) {
    const bool matching = options.names.empty() ||
                          std::ranges::any_of(options.names, [&](const std::string& pattern) {
                            return matches(pattern, each.name);
                          });
    if (matching) chosen.push_back(&each);
  }
  std::vector<const Mutant*> sample;
  for (size_t i = 0; i < chosen.size(); i += options.every) sample.push_back(chosen[i]);
  return sample;
}

struct Tally {
  int64_t idle = 0;
  int64_t survived = 0;
  int64_t errors = 0;
  std::set<std::string> cases;  // Those that caught a mutant.
};

void report_mutant(const Mutant& mutant, const Verdict& verdict, bool verbose, Tally& tally) {
  if (!verdict.error.empty()) {
    ++tally.errors;
    fmt::print("ERROR {}: {}\n", mutant.name, verdict.error);
  } else if (!verdict.took_part) {
    ++tally.idle;
    fmt::print("IDLE {}: {}{}\n", mutant.name, mutant.text,
               verdict.refused == 0
                   ? ""
                   : fmt::format("; {} changed kernels do not verify", verdict.refused));
  } else if (verdict.caught_by.empty()) {
    ++tally.survived;
    fmt::print("SURVIVES {}: {}\n", mutant.name, mutant.text);
  } else {
    tally.cases.insert(verdict.caught_by);
    if (verbose) fmt::print("CAUGHT {}: {}\n", mutant.name, verdict.caught_by);
  }
  std::fflush(stdout);
}

Tally run_mutants(const std::vector<const Mutant*>& chosen, const MutantsOptions& options,
                  Tier tier) {
  static_cast<void>(all_cases());  // Made once, before the children are: it takes a quarter second.
  std::vector<Job> jobs;
  for (const Mutant* each : chosen) {
    jobs.emplace_back([each, &options, tier](const WriteLine& write) {
      auto backend = backend_for_mutant(options.device, each);
      run_cases_on(backend, each->queues, order_for(*each, options, tier), write);
    });
  }
  Tally tally;
  SuiteProgress progress("mutants", static_cast<int64_t>(chosen.size()));
  int64_t done = 0;
  run_forked(jobs, options.jobs, options.timeout, [&](size_t job, const JobResult& result) {
    progress.clear();
    report_mutant(*chosen[job], verdict_of(result), options.verbose, tally);
    progress.done(++done);
  });
  const auto active = static_cast<int64_t>(chosen.size()) - tally.idle - tally.errors;
  const double share = active == 0 ? 0
                                   : 100.0 * static_cast<double>(active - tally.survived) /
                                         static_cast<double>(active);
  fmt::print("{} mutants changed something, {} caught ({:.1f} %), {} survive; {} changed nothing\n",
             active, active - tally.survived, share, tally.survived, tally.idle);
  return tally;
}

// Whether the device itself passes the cases that caught mutants.
bool passes(const MutantsOptions& options, const std::set<std::string>& names) {
  Selection selection;
  selection.patterns.assign(names.begin(), names.end());
  const std::vector<size_t> order = select(all_cases(), selection);
  bool passed = false;
  run_forked({[&](const WriteLine& write) {
               run_cases_on(backend_for_mutant(options.device, nullptr), 1, order, write);
             }},
             1, options.timeout, [&](size_t, const JobResult& result) {
               const Verdict verdict = verdict_of(result);
               passed = verdict.error.empty() && verdict.caught_by.empty();
               if (!passed)
                 fmt::print("FAIL: the device itself fails {}\n",
                            verdict.caught_by + verdict.error);
             });
  if (passed) fmt::print("the device itself passes the {} cases that caught them\n", order.size());
  return passed;
}

int run(const MutantsOptions& options) {
  const auto tier = tier_from_name(options.tier);
  if (!tier) {
    fmt::print(stderr, "mutants: {}\n", tier.error().to_string());
    return 2;
  }
  if (options.insensitive) {
    Selection selection;
    selection.patterns = options.cases;
    selection.tier = *tier;
    return list_insensitive(options.device, select(all_cases(), selection), options.jobs);
  }
  const std::vector<const Mutant*> chosen = chosen_mutants(options);
  if (std::ranges::find(chosen, nullptr) != chosen.end()) {
    fmt::print(stderr, "mutants: a named mutant is in no list\n");
    return 1;
  }
  if (options.list) {
    for (const Mutant* each : chosen) fmt::print("{}: {}\n", each->name, each->text);
    return 0;
  }
  const Tally tally = run_mutants(chosen, options, *tier);
  if (!options.named) return tally.errors == 0 ? 0 : 1;
  const bool all = tally.errors == 0 && tally.survived == 0 && tally.idle == 0;
  return passes(options, tally.cases) && all ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs the conformance suite on devices that are wrong on purpose"};
  MutantsOptions options;
  app.add_option("name", options.names, "mutants, with * and ?; default: all");
  app.add_option("--device", options.device, "the device that is made wrong")
      ->default_str("interp");
  app.add_option("--tier", options.tier, "cases: smoke, quick or full")->default_str("quick");
  app.add_option("--cases", options.cases, "only these cases, with * and ?; repeatable");
  app.add_option("--jobs", options.jobs, "processes; default: one a core");
  app.add_option("--every", options.every, "take every N-th mutant")->check(CLI::PositiveNumber);
  app.add_option("--timeout", options.timeout, "seconds that a case may take")->default_str("60");
  app.add_flag("--list", options.list, "print the mutants and what is wrong with each");
  app.add_flag("--named", options.named, "those that the suite must catch, or fail");
  app.add_flag("--insensitive", options.insensitive, "print the cases that no mutant fails");
  app.add_flag("--verbose", options.verbose, "print which case catches a mutant");
  CLI11_PARSE(app, argc, argv);
  if (options.jobs < 1)
    options.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return run(options);
}
