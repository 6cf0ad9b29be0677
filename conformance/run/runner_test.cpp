// The runner, with workers that are shell scripts.
#include "conformance/run/runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/run/selection.h"
#include "conformance/run/shell_program_test_util.h"
#include "core/base/file.h"

namespace tenon::conformance {
namespace {

// Answers like a worker; what it does in a case depends on the case's number.
constexpr const char* kWorker = R"sh(
echo '{"ready": ["a device"]}' >&3
while read number; do
  echo "{\"begin\": \"case/$number\"}" >&3
  case $number in
    2) echo "about to fail"; kill -SEGV $$ ;;
    3) sleep 60 ;;
    4) exit 7 ;;
  esac
  printf '{"name": "case/%s", "outcome": "pass", "seconds": 0.5, ' $number >&3
  echo '"steps": {"kernels": 2, "calls": 0, "host": 0}}' >&3
done
)sh";

std::vector<Request> requests(size_t count) {
  std::vector<Request> list;
  for (size_t i = 0; i < count; ++i) list.push_back({i, "case/" + std::to_string(i)});
  return list;
}

RunnerOptions options_for(const std::string& script) {
  RunnerOptions options;
  options.worker = shell_program(script);
  options.timeout = 0.5;
  return options;
}

TEST(Runner, ACrashOrAHangCostsOneCase) {
  for (const int jobs : {1, 3}) {
    RunnerOptions options = options_for(kWorker);
    options.jobs = jobs;
    std::map<std::string, CaseRecord> records;
    const auto summary = run_cases(
        requests(8), options, [&](CaseRecord record) { records[record.name] = std::move(record); });
    ASSERT_TRUE(summary) << summary.error().to_string();
    EXPECT_EQ(summary->device, std::vector<std::string>{"a device"});
    EXPECT_EQ(summary->restarts, 3);
    ASSERT_EQ(records.size(), 8u);
    for (const int good : {0, 1, 5, 6, 7}) {
      const CaseResult& result = records["case/" + std::to_string(good)].result;
      EXPECT_EQ(result.outcome, Outcome::kPass) << good;
      EXPECT_EQ(result.steps.kernels, 2);
    }
    EXPECT_EQ(records["case/2"].result.outcome, Outcome::kCrash);
    EXPECT_EQ(records["case/2"].result.message,
              "the process ended by signal 11 (Segmentation fault); it printed: about to fail");
    EXPECT_EQ(records["case/3"].result.outcome, Outcome::kTimeout);
    EXPECT_EQ(records["case/3"].result.message, "no result within 0.5 s");
    EXPECT_EQ(records["case/4"].result.message, "the process ended with exit status 7");
  }
}

// A worker whose device is lost tells so and ends: the cases behind it go to another one.
TEST(Runner, ALostDeviceCostsOneCase) {
  const RunnerOptions options = options_for(R"sh(
echo '{"ready": ["a device"]}' >&3
while read -r number; do
  echo "{\"begin\": \"case/$number\"}" >&3
  outcome=pass
  if [ "$number" = 1 ]; then outcome=device-lost; fi
  printf '{"name": "case/%s", "outcome": "%s", "seconds": 0.5, ' $number $outcome >&3
  echo '"steps": {"kernels": 2, "calls": 0, "host": 0}}' >&3
  if [ "$number" = 1 ]; then sleep 0.2; exit 0; fi
done
)sh");
  std::map<std::string, Outcome> outcomes;
  const auto summary = run_cases(requests(4), options, [&](const CaseRecord& record) {
    outcomes[record.name] = record.result.outcome;
  });
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(summary->restarts, 1);
  const std::map<std::string, Outcome> expected = {{"case/0", Outcome::kPass},
                                                   {"case/1", Outcome::kDeviceLost},
                                                   {"case/2", Outcome::kPass},
                                                   {"case/3", Outcome::kPass}};
  EXPECT_EQ(outcomes, expected);
}

// A case leaves a folder as it begins and removes it as it ends; the one that runs alone looks for
// others.
TEST(Runner, ACaseThatRunsAloneIsTheLastAndHasNoOthersBesideIt) {
  const std::string folder = testing::TempDir() + "tenon_alone_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  RunnerOptions options = options_for("cd " + folder + R"sh(
echo '{"ready": ["a device"]}' >&3
while read -r number; do
  echo "{\"begin\": \"case/$number\"}" >&3
  echo $number >>"$PWD.order"
  mkdir $number
  sleep 0.1
  outcome=pass
  if [ "$number" = 1 ] && [ "$(ls | wc -l)" != 1 ]; then outcome=fail; fi
  if [ "$number" = 2 ] && [ "$(ls | wc -l)" != 1 ]; then outcome=fail; fi
  rmdir $number
  printf '{"name": "case/%s", "outcome": "%s", "seconds": 0.5, ' $number $outcome >&3
  echo '"steps": {"kernels": 2, "calls": 0, "host": 0}}' >&3
done
)sh");
  options.jobs = 3;
  options.timeout = 10;
  std::vector<Request> list = requests(8);
  list[1].alone = true;
  list[2].alone = true;
  const auto summary = run_cases(list, options, [&](const CaseRecord& record) {
    EXPECT_EQ(record.result.outcome, Outcome::kPass) << record.name;
  });
  const std::string order = read_file(folder + ".order").value_or("");
  std::filesystem::remove_all(folder);
  std::filesystem::remove(folder + ".order");
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(order.size(), 16u) << order;
  EXPECT_TRUE(order.ends_with("1\n2\n")) << order;
}

// The answers of a worker to a case that passes.
constexpr const char* kPass = R"sh(
pass() {
  printf '{"name": "case/%s", "outcome": "pass", "seconds": 0.5, ' $1 >&3
  echo '"steps": {"kernels": 2, "calls": 0, "host": 0}}' >&3
}
begin() { echo "{\"begin\": \"case/$1\"}" >&3; }
)sh";

std::map<std::string, CaseResult> results_of(const std::string& script, size_t count,
                                             int jobs = 1) {
  RunnerOptions options = options_for(kPass + script);
  options.jobs = jobs;
  std::map<std::string, CaseResult> results;
  const auto summary = run_cases(requests(count), options, [&](const CaseRecord& record) {
    EXPECT_TRUE(results.emplace(record.name, record.result).second) << record.name;
  });
  EXPECT_TRUE(summary) << summary.error().to_string();
  return results;
}

// An end between two cases is the fault of the first, and the second runs on another worker.
TEST(Runner, ACrashBehindAResultIsThatOfItsCase) {
  for (const int jobs : {1, 3}) {
    const auto results = results_of(R"sh(
echo '{"ready": ["a device"]}' >&3
while read -r number; do
  begin $number; pass $number
  if [ $number = 1 ]; then kill -SEGV $$; fi
done
)sh",
                                    4, jobs);
    ASSERT_EQ(results.size(), 4u);
    EXPECT_EQ(results.at("case/1").outcome, Outcome::kCrash);
    EXPECT_EQ(results.at("case/1").message,
              "the process ended by signal 11 (Segmentation fault), after the case's result");
    for (const char* name : {"case/0", "case/2", "case/3"}) {
      EXPECT_EQ(results.at(name).outcome, Outcome::kPass) << name;
    }
  }
}

TEST(Runner, ACrashWhenTheDeviceIsClosedIsFound) {
  const auto results = results_of(R"sh(
echo '{"ready": ["a device"]}' >&3
while read -r number; do begin $number; pass $number; done
kill -SEGV $$
)sh",
                                  2);
  EXPECT_EQ(results.at("case/0").outcome, Outcome::kPass);
  EXPECT_EQ(results.at("case/1").outcome, Outcome::kCrash);
}

TEST(Runner, ALostDeviceWhoseCloseHangsIsReplaced) {
  const auto results = results_of(R"sh(
echo '{"ready": ["a device"]}' >&3
while read -r number; do
  begin $number
  if [ $number = 0 ]; then
    echo '{"name": "case/0", "outcome": "device-lost", "seconds": 0, "steps": {"kernels": 0, "calls": 0, "host": 0}}' >&3
    sleep 60
  fi
  pass $number
done
)sh",
                                  3);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results.at("case/0").outcome, Outcome::kDeviceLost);
  EXPECT_EQ(results.at("case/2").outcome, Outcome::kPass);
}

// The first worker leaves a file, on which those behind it do not open.
TEST(Runner, ADeviceThatDoesNotOpenAgainEndsTheRunWithAReport) {
  const std::string mark = testing::TempDir() + "tenon_runner_reopen_" + std::to_string(getpid());
  const auto results = results_of(
      "if [ -e " + mark + " ]; then echo '{\"error\": \"it is gone\"}' >&3; exit 1; fi\n" +
          "touch " + mark + R"sh(
echo '{"ready": ["a device"]}' >&3
while read -r number; do
  begin $number
  if [ $number = 1 ]; then kill -SEGV $$; fi
  pass $number
done
)sh",
      4);
  unlink(mark.c_str());
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results.at("case/0").outcome, Outcome::kPass);
  EXPECT_EQ(results.at("case/1").outcome, Outcome::kCrash);
  for (const char* name : {"case/2", "case/3"}) {
    EXPECT_EQ(results.at(name).outcome, Outcome::kDeviceLost);
    EXPECT_EQ(results.at(name).message, "the device does not open: it is gone");
  }
}

// A process that a plug-in starts holds the worker's descriptors, and does not end with it.
TEST(Runner, ACrashIsSeenThoughAnotherProcessHoldsTheAnswers) {
  const auto results = results_of(R"sh(
echo '{"ready": ["a device"]}' >&3
sleep 60 &
while read -r number; do
  begin $number
  if [ $number = 0 ]; then kill -SEGV $$; fi
  pass $number
done
)sh",
                                  2);
  EXPECT_EQ(results.at("case/0").outcome, Outcome::kCrash) << results.at("case/0").message;
  EXPECT_EQ(results.at("case/1").outcome, Outcome::kPass);
}

// A failure is known before its program is reduced.
TEST(Runner, AFailureOutlivesItsReduction) {
  const auto results = results_of(R"sh(
echo '{"ready": ["a device"]}' >&3
while read -r number; do
  begin $number
  echo '{"found": {"name": "case/0", "outcome": "fail", "message": "1, expected 2", "seconds": 0, "steps": {"kernels": 1, "calls": 0, "host": 0}}}' >&3
  sleep 60
done
)sh",
                                  1);
  EXPECT_EQ(results.at("case/0").outcome, Outcome::kFail);
  EXPECT_EQ(results.at("case/0").message,
            "1, expected 2; its program is not reduced: no result within 0.5 s");
}

TEST(Runner, AnswersThatAreNoneAreErrors) {
  const auto ignore = [](const CaseRecord&) {};
  for (const char* answer : {"no JSON", "[]", R"({"ready": 5})", R"({"ready": [5]})",
                             R"({"begin": "case/0"})", R"({"name": 3})"}) {
    const auto ran =
        run_cases(requests(1), options_for(fmt::format("echo '{}' >&3; sleep 60", answer)), ignore);
    EXPECT_FALSE(ran) << answer;
  }
}

TEST(Runner, ADeviceThatDoesNotOpenIsAnError) {
  const auto ignore = [](const CaseRecord&) {};
  const auto refused = run_cases(
      requests(2), options_for(R"(echo '{"error": "it is in use"}' >&3; exit 1)"), ignore);
  EXPECT_EQ(refused.error().message(), "the device does not open: it is in use");
  const auto crashed = run_cases(requests(2), options_for("kill -ABRT $$"), ignore);
  EXPECT_EQ(crashed.error().message(),
            "the device does not open: the process ended by signal 6 (Aborted)");
  const auto late = run_cases(requests(2), options_for("sleep 60"), ignore);
  EXPECT_EQ(late.error().message(), "the device does not open within 0.5 s");
  const auto nothing = run_cases(requests(1), options_for("exec /nowhere/worker"), ignore);
  EXPECT_TRUE(nothing.error().message().starts_with(
      "the device does not open: the process ended with exit status 127"))
      << nothing.error().message();
}

TEST(Runner, ADeviceOfOneProcessGetsOneWorker) {
  // The first worker makes the folder, the others find it.
  const std::string lock = testing::TempDir() + "tenon_runner_test_" + std::to_string(getpid());
  const std::string script = "mkdir " + lock +
                             " 2>/dev/null || { echo '{\"error\": \"taken\"}' >&3; exit 1; }" +
                             std::string(kWorker);
  RunnerOptions options = options_for(script);
  options.jobs = 4;
  size_t passed = 0;
  const auto summary = run_cases(
      {{0, "case/0"}, {1, "case/1"}, {5, "case/5"}, {6, "case/6"}}, options,
      [&](const CaseRecord& record) { passed += record.result.outcome == Outcome::kPass ? 1 : 0; });
  rmdir(lock.c_str());
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(passed, 4u);
}

TEST(CaseRecords, AreTheSameFromJson) {
  CaseRecord record;
  record.name = "op/tanh/f32/prime/mixed";
  record.result.outcome = Outcome::kFail;
  record.result.message = "stablehlo.tanh result 0 element [3]: 1, expected 0.5";
  record.result.blame = Blame::kKernel;
  record.result.reproducer = "func.func @main()";
  record.result.listing = "y[v1] = v2; | y[v1] = 0.5, the device: 1";
  record.result.steps.kernels = 3;
  record.result.ledger = {
      {"stablehlo.tanh", ElementType::kF32, HUGE_VAL, 5, 13, "1.5", "1", "0.5"}};
  const auto read = record_from_json(to_json(record));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read), to_json(record));
  EXPECT_FALSE(record_from_json({{"name", "x"}}));
  EXPECT_FALSE(record_from_json({{"name", "x"}, {"outcome", "good"}}));
}

TEST(Selections, TakePatternsTiersAndShards) {
  std::vector<ConformanceCase> cases;
  for (const char* name : {"op/add/f32/a", "op/add/f64/a", "op/sub/f32/a", "op/sub/f64/a"}) {
    cases.push_back({name, nullptr, Tier::kFull});
  }
  cases[2].tier = Tier::kSmoke;
  Selection selection;
  EXPECT_EQ(select(cases, selection), (std::vector<size_t>{0, 1, 2, 3}));
  selection.patterns = {"op/*/f32/*"};
  EXPECT_EQ(select(cases, selection), (std::vector<size_t>{0, 2}));
  selection.excluded = {"op/add/*"};
  EXPECT_EQ(select(cases, selection), (std::vector<size_t>{2}));
  Selection smoke;
  smoke.tier = Tier::kSmoke;
  EXPECT_EQ(select(cases, smoke), (std::vector<size_t>{2}));
  Selection half;
  ASSERT_TRUE(parse_shard("2/2", half).ok());
  EXPECT_EQ(select(cases, half), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(parse_shard("3/2", half).message(),
            "'3/2' is no shard: expected I/N with 1 <= I <= N, as in 1/4");
  EXPECT_FALSE(parse_shard("1", half).ok());
  EXPECT_FALSE(tier_from_name("fast"));
  cases[0].tier = Tier::kExtended;
  EXPECT_EQ(select(cases, {}), (std::vector<size_t>{1, 2, 3}));
  Selection extended;
  extended.tier = *tier_from_name("extended");
  EXPECT_EQ(select(cases, extended), (std::vector<size_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace tenon::conformance
