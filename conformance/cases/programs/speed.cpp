// Speed: no class of ops far slower than the device's own elementwise rate explains, and no cost
// that grows faster than the work (conformance/measure/speed.h). A case that passes says nothing of
// its times, so that reports of two runs are equal.
#include "conformance/measure/speed.h"

#include <fmt/format.h>

#include "conformance/cases/interface/runtime_device.h"
#include "conformance/measure/timed_program.h"

namespace tenon::conformance {
namespace {

using SpeedJudge = Result<std::optional<std::string>> (*)(const SpeedClass& one,
                                                          const RunOfSize& run,
                                                          const SpeedLimits& limits);

// The program that ran last, loaded.
class SpeedPrograms {
 public:
  explicit SpeedPrograms(RuntimeDevice& device) : device_(device) {}

  Result<TimedRun> run(const SpeedClass& one, int64_t n) {
    if (class_ != &one || size_ != n) {
      class_ = nullptr;
      program_ = {};  // Its memory comes first.
      auto loaded = TimedProgram::load(device_.client(), one.program(n), true);
      if (!loaded && loaded.error().code() == ErrorCode::kFailedPrecondition)
        return unimplemented("{}", loaded.error().message());  // The host would run a step.
      if (!loaded) return Error(loaded.error());
      program_ = *std::move(loaded);
      class_ = &one;
      size_ = n;
    }
    TENON_ASSIGN(const double seconds, seconds_of([&] { return program_.run(); }));
    return TimedRun{seconds, program_.bytes};
  }

  // Once more, where its steps are counted.
  Status count_steps(const SpeedClass& one) {
    TENON_TRY(run(one, one.first));
    TENON_ASSIGN(const runtime::Execution counted,
                 device_.execute(*program_.executable, program_.arguments));
    return counted.done.await();
  }

 private:
  RuntimeDevice& device_;
  const SpeedClass* class_ = nullptr;
  int64_t size_ = 0;
  TimedProgram program_;
};

CaseResult run_speed_case(const SpeedClass& one, SpeedJudge judge, CaseContext& context) {
  std::optional<std::string> verdict;
  CaseResult result = run_on_runtime(context, [&](RuntimeDevice& device) -> Status {
    SpeedPrograms programs(device);
    SpeedLimits limits;
    const int64_t room = device.target().spaces[0].bytes;
    if (room > 0) limits.most_bytes = std::min(limits.most_bytes, static_cast<double>(room / 8));
    TENON_TRY(programs.count_steps(one));
    TENON_ASSIGN(
        verdict,
        judge(one, [&](const SpeedClass& of, int64_t n) { return programs.run(of, n); }, limits));
    return {};
  });
  if (result.outcome == Outcome::kPass && verdict) {
    result.outcome = Outcome::kFail;
    result.message = *verdict;
  }
  return result;
}

void add_speed_case(CaseList& list, std::string_view what, const SpeedClass& one,
                    SpeedJudge judge) {
  ConformanceCase added;
  added.name = fmt::format("speed/{}/{}", what, one.name);
  added.tier = Tier::kExtended;
  added.needs = CaseNeeds::kInterface;
  added.alone = true;
  added.run = [&one, judge](CaseContext& context) { return run_speed_case(one, judge, context); };
  list.cases.push_back(std::move(added));
}

}  // namespace

void add_speed_cases(CaseList& list) {
  for (const SpeedClass& each : speed_classes()) {
    if (each.has_rate) add_speed_case(list, "rate", each, judge_rate);
  }
  for (const SpeedClass& each : speed_classes()) add_speed_case(list, "growth", each, judge_growth);
}

}  // namespace tenon::conformance
