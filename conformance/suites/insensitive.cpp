#include "conformance/suites/insensitive.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "conformance/cases/case.h"
#include "conformance/run/progress.h"
#include "conformance/run/selection.h"
#include "conformance/run/worker.h"
#include "conformance/suites/devices.h"
#include "conformance/suites/forked.h"
#include "core/base/random.h"
#include "core/types/float_convert.h"

namespace tenon::conformance {
namespace {

// Flips a bit of an integer; doubles a float, or makes it NaN.
void spoil(Literal& array, int64_t i, Random& random) {
  const ElementType type = array.element_type();
  const size_t width = storage_bytes(type);
  std::byte* const at = array.mutable_data().data() + i * static_cast<int64_t>(width);
  if (!is_float(type) && !is_complex(type)) {
    const int64_t bit = random.below(is_pred(type) ? 1 : bit_width(type));
    array.set_integer(i, wrap_integer(type, array.get_integer(i) ^ (int64_t{1} << bit)));
    return;
  }
  const bool to_nan = random.one_in(2);
  if (is_complex(type)) {  // The highest exponent bit of the real part.
    at[width / 2 - 1] ^= std::byte{0x40};
    return;
  }
  const double x = array.get_double(i);
  if (to_nan && !std::isnan(x)) {
    array.set_double(i, NAN);
    if (std::isnan(array.get_double(i))) return;
  }
  array.set_double(i, std::isfinite(x) && x != 0 ? 2 * x : 1);
  // The type may have no such number.
  if (array.get_double(i) == x) array.set_double(i, x / 2);
}

// The evaluator, with one element of one result changed.
class SpoiledTarget : public Target {
 public:
  std::vector<std::string> description() const override { return inner_->description(); }

  Result<TargetRun> run(const hlo::Module& module, std::span<const Literal> arguments) override {
    TENON_ASSIGN(TargetRun run, inner_->run(module, arguments));
    std::vector<size_t> candidates;
    for (size_t i = 0; i < run.results.size(); ++i) {
      if (run.results[i].element_count() > 0) candidates.push_back(i);
    }
    if (candidates.empty()) return run;
    Literal& array = run.results[candidates[random_.below(std::ssize(candidates))]];
    spoil(array, random_.below(array.element_count()), random_);
    return run;
  }
  void reseed(uint64_t seed) { random_ = Random(seed); }

 private:
  const std::unique_ptr<Target> inner_ = make_evaluator_target();
  Random random_{0};
};

bool fails(const ConformanceCase& one, Target& target) {
  WorkerOptions worker;
  worker.reduce = false;
  return is_failure(run_case(one, target, worker));
}

constexpr uint64_t kSeeds = 8;

bool program_is_sensitive(const ConformanceCase& one, SpoiledTarget& target) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    target.reseed(seed);
    if (fails(one, target)) return true;
  }
  return false;
}

// Whether the mutant changes what a case calls: a statement, the kernel's operation, a function.
bool concerns(const Mutant& mutant, const std::string& name) {
  const bool is_kernel = name.starts_with("kernel/");
  if (is_kernel != mutant.name.starts_with("kernel/")) return false;
  const bool is_statement = mutant.likely.front().starts_with("kernel/");
  return !is_kernel || is_statement || matches(mutant.likely.back() + "*", name);
}

// The mutants that concern a case. Stores of another value come first: they fail most cases.
std::vector<const Mutant*> mutants_for(const std::string& name) {
  std::vector<const Mutant*> list;
  for (const bool stores : {true, false}) {
    for (const Mutant& each : all_mutants()) {
      if (each.name.starts_with("kernel/store/") == stores && concerns(each, name))
        list.push_back(&each);
    }
  }
  return list;
}

// Writes "sensitive" once a mutant fails the case. A crash fails it too.
void try_mutants(const std::string& device, const ConformanceCase& one, const WriteLine& write) {
  for (const Mutant* each : mutants_for(one.name)) {
    write(fmt::format("{} on {}", one.name, each->name));
    const auto backend = backend_for_mutant(device, each);
    if (!backend) continue;
    const auto target = make_device_target({*backend, 0});
    if (target && !fails(one, **target)) continue;
    write("sensitive");
    return;
  }
  write("insensitive " + one.name);
}

void check_programs(const std::vector<const ConformanceCase*>& cases, size_t part, size_t parts,
                    const WriteLine& write) {
  SpoiledTarget target;
  for (size_t i = part; i < cases.size(); i += parts) {
    write("case " + cases[i]->name);
    if (!program_is_sensitive(*cases[i], target)) write("insensitive " + cases[i]->name);
  }
}

}  // namespace

Result<std::shared_ptr<backend::Backend>> backend_for_mutant(const std::string& device,
                                                             const Mutant* mutant) {
  if (mutant != nullptr && mutant->queues > 1)
    ::setenv("TENON_INTERP_QUEUES", std::to_string(mutant->queues).c_str(), 1);
  TENON_ASSIGN(auto backend, backend_named(device));
  return mutant == nullptr ? backend : make_mutant(std::move(backend), mutant->name);
}

int list_insensitive(const std::string& device, const std::vector<size_t>& cases, int at_once) {
  std::vector<const ConformanceCase*> programs;
  std::vector<Job> jobs;
  for (const size_t i : cases) {
    const ConformanceCase& one = all_cases()[i];
    if (one.needs == CaseNeeds::kPlugin) continue;
    if (one.needs == CaseNeeds::kNothing) {
      programs.push_back(&one);
      continue;
    }
    jobs.emplace_back([&one, &device](const WriteLine& write) { try_mutants(device, one, write); });
  }
  constexpr size_t kParts = 64;
  for (size_t part = 0; part < kParts; ++part) {
    jobs.emplace_back([&programs, part](const WriteLine& write) {
      check_programs(programs, part, kParts, write);
    });
  }
  SuiteProgress progress("parts", std::ssize(jobs));
  int64_t done = 0;
  int64_t found = 0;
  run_forked(jobs, at_once, 120, [&](size_t, const JobResult& result) {
    progress.clear();
    if (result.end != JobEnd::kDone && !result.lines.empty()) {
      // A part ends there; a single case fails by it.
      if (result.lines.back().starts_with("case ")) ++found;
      fmt::print("{} in {}\n", result.end == JobEnd::kCrashed ? "CRASH" : "HANG",
                 result.lines.back());
    }
    for (const std::string& line : result.lines) {
      if (!line.starts_with("insensitive ")) continue;
      ++found;
      fmt::print("INSENSITIVE {}\n", line.substr(12));
    }
    std::fflush(stdout);
    progress.done(++done);
  });
  fmt::print("{} of {} cases are insensitive\n", found, cases.size());
  return found == 0 ? 0 : 1;
}

}  // namespace tenon::conformance
