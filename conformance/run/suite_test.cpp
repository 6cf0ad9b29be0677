// Runs that are interrupted and go on, with workers that are shell scripts.
#include "conformance/run/suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/run/shell_program_test_util.h"
#include "core/base/file.h"

namespace tenon::conformance {
namespace {

std::vector<ConformanceCase> cases_of(size_t count) {
  std::vector<ConformanceCase> list;
  for (size_t i = 0; i < count; ++i) list.push_back({fmt::format("case/{}", i), nullptr});
  return list;
}

// A worker that says in the file `log` which cases it ran.
SuiteOptions options_for(const TemporaryFolder& folder, const char* device = "a device") {
  SuiteOptions options;
  options.runner.worker = shell_program(fmt::format(R"sh(
echo '{{"ready": ["{}"]}}' >&3
while read number; do
  echo $number >>{}
  echo "{{\"begin\": \"case/$number\"}}" >&3
  printf '{{"name": "case/%s", "outcome": "fail", "message": "raw", "seconds": 0.5, ' $number >&3
  echo '"steps": {{"kernels": 2, "calls": 0, "host": 0}}}}' >&3
done
)sh",
                                                    device, folder.file("log")));
  options.identity.tenon = "1.0";
  options.journal = folder.file("report.json.partial");
  return options;
}

const std::vector<size_t> kAll = {0, 1, 2, 3, 4, 5};

// Runs until `most` records have arrived.
size_t run_some(const TemporaryFolder& folder, size_t most) {
  volatile bool stop = false;
  size_t seen = 0;
  const auto ran = run_suite(
      cases_of(6), kAll, options_for(folder), [&](const CaseRecord&) { stop = ++seen >= most; },
      &stop);
  EXPECT_TRUE(ran && ran->summary.interrupted && ran->records.size() < 6);
  return ran ? ran->records.size() : 0;
}

TEST(Suites, GoOnFromTheirJournal) {
  const auto folder = TemporaryFolder::create("tenon_suite_test");
  const size_t had = run_some(*folder, 2);
  ASSERT_GE(had, 2u);
  ASSERT_TRUE(write_file(folder->file("log"), "").ok());
  SuiteOptions options = options_for(*folder);
  options.resume = true;
  size_t seen = 0;
  const auto ran = run_suite(cases_of(6), kAll, options, [&](const CaseRecord&) { ++seen; });
  ASSERT_TRUE(ran) << ran.error().to_string();
  EXPECT_EQ(ran->resumed, had);
  EXPECT_EQ(seen, 6u);
  ASSERT_EQ(ran->records.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(ran->records[i].name, fmt::format("case/{}", i));
  const std::string log = *read_file(folder->file("log"));
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(log, '\n')), 6 - had);  // Only the others.
  // Again: nothing is left to run, and the journal says which device it was.
  const auto again = run_suite(cases_of(6), kAll, options, [](const CaseRecord&) {});
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->resumed, 6u);
  EXPECT_EQ(again->summary.device, std::vector<std::string>{"a device"});
}

TEST(Suites, ALineThatWasNotWrittenWholeIsRunAgain) {
  const auto folder = TemporaryFolder::create("tenon_suite_test");
  const size_t had = run_some(*folder, 2);
  const std::string path = folder->file("report.json.partial");
  std::string text = *read_file(path);
  text.resize(text.size() - 5);
  ASSERT_TRUE(write_file(path, text).ok());
  SuiteOptions options = options_for(*folder);
  options.resume = true;
  const auto ran = run_suite(cases_of(6), kAll, options, [](const CaseRecord&) {});
  ASSERT_TRUE(ran) << ran.error().to_string();
  EXPECT_EQ(ran->resumed, had - 1);
  EXPECT_EQ(ran->records.size(), 6u);
  const auto journal = read_journal(path);
  ASSERT_TRUE(journal) << journal.error().to_string();
  EXPECT_EQ(journal->records.size(), 6u);
}

TEST(Suites, RefuseTheJournalOfAnotherRun) {
  const auto folder = TemporaryFolder::create("tenon_suite_test");
  run_some(*folder, 2);
  const auto refusal = [&](auto change, const std::vector<size_t>& chosen = kAll) {
    SuiteOptions options = options_for(*folder);
    options.resume = true;
    change(options);
    const auto ran = run_suite(cases_of(6), chosen, options, [](const CaseRecord&) {});
    return ran ? std::string("none") : ran.error().message();
  };
  const std::string begin = "the journal is of another run: its ";
  EXPECT_EQ(refusal([](SuiteOptions& o) { o.identity.seed = 5; }),
            begin + "seed is 0, that of this run is 5");
  EXPECT_EQ(refusal([](SuiteOptions& o) { o.identity.tenon = "2.0"; }),
            begin + "version of Tenon is 1.0, that of this run is 2.0");
  EXPECT_TRUE(refusal([](SuiteOptions& o) {
                o.identity.bounds = "x";
              }).starts_with(begin + "relaxed bounds"));
  EXPECT_TRUE(refusal([](SuiteOptions& o) {
                o.identity.plugin = "x";
              }).starts_with(begin + "plug-in's file"));
  EXPECT_TRUE(refusal([](SuiteOptions&) {}, {0, 1}).starts_with(begin + "selection of cases"));
  EXPECT_EQ(refusal([&](SuiteOptions& o) {
              o.runner.worker = options_for(*folder, "another one").runner.worker;
            }),
            begin + "device is 'a device', that of this run is 'another one'");
  EXPECT_TRUE(refusal([](SuiteOptions& o) { o.journal += ".not"; }).find("No such file") !=
              std::string::npos);
  ASSERT_TRUE(write_file(folder->file("report.json.partial"), "{}\n").ok());
  EXPECT_TRUE(refusal([](SuiteOptions&) {}).find("not a journal") != std::string::npos);
}

}  // namespace
}  // namespace tenon::conformance
