// Reports in every format, differences, and submissions that are not what they say.
#include "conformance/report/report.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "conformance/report/console.h"
#include "conformance/report/difference.h"
#include "conformance/report/formats.h"
#include "conformance/report/submission.h"
#include "conformance/run/selection.h"
#include "conformance/terms/json_file.h"
#include "core/base/digest.h"
#include "core/base/file.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

constexpr const char* kVersion = "0.9";

CaseRecord record_of(const std::string& name, Outcome outcome, const std::string& message = "") {
  CaseRecord record;
  record.name = name;
  record.result.outcome = outcome;
  record.result.message = message;
  record.result.steps.kernels = 1;
  record.seconds = 0.25;
  return record;
}

Report report_of(std::vector<CaseRecord> records) {
  Report report;
  report.tenon = kVersion;
  report.device = {"a device"};
  report.command = "tenon conform";
  report.date = "2026-11-25";
  report.tier = "full";
  report.records = std::move(records);
  return report;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Reports, AreTheSameFromJson) {
  Report report = report_of({record_of("op/tan/f32/a", Outcome::kFail, "it is wrong")});
  report.records[0].result.arguments = "f32[1] {1}";
  report.records[0].result.blame = Blame::kInterface;
  report.records[0].result.ledger = {
      {"stablehlo.tan", ElementType::kF32, 70, 5, 13, "1.5", "1", "0.5", 64},
      {"stablehlo.fft", ElementType::kC64, 0.5, 1, 8, "", "", "", 0, ErrorUnit::kBound}};
  report.profile = "minimal";
  report.terms.declaration = Declaration{"X1", "Example", "2", {}, {{"op/a/*", "none"}}, {}};
  report.terms.waivers = {{"op/x/*", "bug", "A", "link", *date_from_text("2027-01-01")}};
  report.unused_waivers = report.terms.waivers;
  const auto read = report_from_json(to_json(report));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read), to_json(report));
  EXPECT_FALSE(report_from_json({{"report", 3}}));
  EXPECT_FALSE(report_from_json(json::array()));
  json other = to_json(report);
  other["report"] = 1;
  EXPECT_EQ(report_from_json(other).error().message(),
            "a report of version 1: this Tenon reads version 3");
}

TEST(Reports, PrintTheFirstFailureFirst) {
  Report report = report_of({record_of("op/a/f32/x", Outcome::kPass),
                             record_of("op/b/f32/x", Outcome::kFail, "first"),
                             record_of("op/c/f32/x", Outcome::kFail, "second"),
                             record_of("op/d/f32/x", Outcome::kQualityWarning, "inexact")});
  CaseResult& result = report.records[1].result;
  result.blame = Blame::kKernel;
  result.step = "add_1 (stablehlo.add)";
  result.arguments = "f32[1] {7}";
  report.unused_waivers = {{"op/z/*", "bug", "A. Smith", "link", *date_from_text("2027-01-01")}};
  const std::string text = summary_text(report, false, true);
  EXPECT_TRUE(
      text.starts_with("first failure:\nfail op/b/f32/x\n  first\n  to blame: kernel\n"
                       "  function: add_1 (stablehlo.add)\n  arguments: f32[1] {7}\n"
                       "  again: tenon conform 'op/b/f32/x'\n"))
      << text;
  EXPECT_TRUE(has(text, "4 cases: 1 pass, 1 quality-warning, 2 fail\n")) << text;
  EXPECT_TRUE(has(text, "quality warnings:\n  op/d/f32/x: inexact\n")) << text;
  EXPECT_TRUE(has(text, "the waiver of 'op/z/*' (A. Smith) matches no case\n")) << text;
  EXPECT_TRUE(has(text, "slowest cases:\n  0.250 s op/")) << text;
  EXPECT_FALSE(has(summary_text(report, false, false), "slowest"));
}

TEST(JUnit, HasSuitesByOpAndEscapesText) {
  Report report = report_of({record_of("op/add/f32/a", Outcome::kPass),
                             record_of("op/add/f32/b", Outcome::kFail, "<1> & \"2\" \x1b[1m\n\xff"),
                             record_of("op/sub/f32/a", Outcome::kCrash, "signal 11"),
                             record_of("op/sub/f32/b", Outcome::kWaived, "wrong")});
  report.records[3].result.excuse = "a bug";
  const std::string xml = to_junit(report);
  EXPECT_TRUE(has(xml, R"(<testsuites name="tenon conform" tests="4" failures="1" errors="1" )"
                       R"(skipped="1" time="1.000">)"))
      << xml;
  EXPECT_TRUE(has(xml, R"(<testsuite name="op/add" tests="2" failures="1" errors="0" skipped="0")"))
      << xml;
  EXPECT_TRUE(has(xml,
                  "<failure type=\"fail\" message=\"&lt;1&gt; &amp; &quot;2&quot; "
                  "\uFFFD[1m&#10;\uFFFD\">"))
      << xml;
  EXPECT_TRUE(has(xml, R"(<error type="crash" message="signal 11">)")) << xml;
  EXPECT_TRUE(has(xml, R"(<skipped message="waived: a bug"/>)")) << xml;
  EXPECT_TRUE(has(xml, "again: tenon conform 'op/add/f32/b'")) << xml;
}

TEST(HtmlPages, HaveTheDataAndNoReferences) {
  const Report report =
      report_of({record_of("op/add/f32/a", Outcome::kFail, "</script><script>alert(1)<!--")});
  const std::string page = to_html(report);
  EXPECT_FALSE(has(page, "@DATA@"));
  EXPECT_FALSE(has(page, "</script><script>alert"));
  EXPECT_TRUE(has(page, R"(\u003c/script>\u003cscript>alert(1)\u003c!--)")) << page.size();
  EXPECT_TRUE(has(page, R"(["op/add/f32/a",)"));
  for (const char* const reference : {"src=", "href=", "@import", "url(", "fetch("}) {
    EXPECT_FALSE(has(page, reference)) << reference;
  }
}

TEST(Differences, AreWorseOrBetter) {
  const auto with_error = [](Outcome outcome, double ulp) {
    CaseRecord record = record_of("op/tan/f32/a", outcome);
    record.result.ledger = {{"stablehlo.tan", ElementType::kF32, ulp, 5, 1, "", "", ""}};
    return report_of({record});
  };
  const auto worse = [](const Report& a, const Report& b) {
    return difference_of(a, b).count_worse();
  };
  const Report good = with_error(Outcome::kPass, 1);
  EXPECT_EQ(difference_text(difference_of(good, good)), "0 changes, 0 worse\n");
  EXPECT_EQ(difference_text(difference_of(good, with_error(Outcome::kFail, 2))),
            "worse op/tan/f32/a: pass -> fail\n"
            "worse stablehlo.tan of f32: 1.000 ULP -> 2.000 ULP\n2 changes, 2 worse\n");
  EXPECT_EQ(difference_text(difference_of(with_error(Outcome::kFail, 2), good)),
            "better op/tan/f32/a: fail -> pass\n"
            "better stablehlo.tan of f32: 2.000 ULP -> 1.000 ULP\n2 changes, 0 worse\n");
  EXPECT_EQ(worse(good, with_error(Outcome::kQualityWarning, 1)), 1u);
  EXPECT_EQ(worse(with_error(Outcome::kQualityWarning, 1), with_error(Outcome::kWaived, 1)), 1u);
  EXPECT_EQ(worse(with_error(Outcome::kFail, 1), with_error(Outcome::kCrash, 1)), 0u);
  EXPECT_EQ(
      difference_text(difference_of(with_error(Outcome::kFail, 1), with_error(Outcome::kCrash, 1))),
      "other op/tan/f32/a: fail -> crash\n1 changes, 0 worse\n");
  EXPECT_EQ(worse(good, report_of({})), 2u);  // The case is gone, and so is its error.
  EXPECT_EQ(worse(with_error(Outcome::kFail, 1), report_of({})), 2u);
  EXPECT_EQ(worse(report_of({}), with_error(Outcome::kPass, 6)), 1u);  // Beyond its bound of 5.
  EXPECT_TRUE(has(difference_text(difference_of(report_of({}), good)),
                  "other stablehlo.tan of f32: absent -> 1.000 ULP\n"));
  Report shares = good;
  shares.records[0].result.ledger[0].unit = ErrorUnit::kBound;
  EXPECT_TRUE(has(difference_text(difference_of(good, shares)),
                  "worse stablehlo.tan of f32: 1.000 ULP -> absent\n"));
  Report other = good;
  other.tier = "smoke";
  other.device = {"another"};
  EXPECT_EQ(difference_of(good, other).notes.size(), 2u);
  EXPECT_EQ(worse(report_of({}), good), 0u);
  EXPECT_EQ(worse(report_of({}), with_error(Outcome::kFail, 1)), 1u);
  const json made = to_json(difference_of(good, report_of({})));
  EXPECT_EQ(made.at("outcomes")[0].at("after"), "absent");
  EXPECT_EQ(made.at("ledger")[0].at("after"), "absent");
  EXPECT_EQ(made.at("worse"), 2);
}

// --- Submissions

// A run of the profile minimal in which every case passes.
Report conformant() {
  std::vector<CaseRecord> records;
  Selection selection;
  selection.has = CaseNeeds::kInterface;
  selection.profile = *builtin_profile("minimal");
  for (const size_t i : select(all_cases(), selection)) {
    records.push_back(record_of(all_cases()[i].name, Outcome::kPass));
  }
  Report report = report_of(std::move(records));
  report.profile = "minimal";
  report.suite = suite_digest(all_cases());
  report.terms.declaration = Declaration{"X1", "Example", "2", {}, {}, {}};
  return report;
}

// The first fault of a submission, or its error; empty if it is verified.
std::string verdict(const std::string& folder, const char* version = kVersion) {
  const auto found = verify_submission(folder, version);
  if (!found) return found.error().message();
  return found->faults.empty() ? "" : found->faults.front();
}

// The verdict on a submission of `report`, with a file changed and its digest too.
std::string verdict_of(const Report& report, const char* file = nullptr,
                       const std::function<void(json&)>& change = {}) {
  const auto folder = TemporaryFolder::create("tenon_submission");
  const Status written = write_submission(folder->path(), report);
  if (!written.ok()) return written.message();
  if (file != nullptr) {
    json document = *read_json_file(folder->file(file));
    const std::string before = serial::digest_of(*read_file(folder->file(file)));
    change(document);
    EXPECT_TRUE(write_json_file(folder->file(file), document).ok());
    std::string digests = *read_file(folder->file(kDigests));
    digests.replace(digests.find(before), before.size(),
                    serial::digest_of(*read_file(folder->file(file))));
    EXPECT_TRUE(write_file(folder->file(kDigests), digests).ok());
  }
  return verdict(folder->path());
}

TEST(Submissions, OfAConformantDeviceAreVerified) {
  EXPECT_EQ(verdict_of(conformant()), "");
  const auto folder = TemporaryFolder::create("tenon_submission");
  ASSERT_TRUE(write_submission(folder->path(), conformant()).ok());
  EXPECT_EQ(
      verify_submission(folder->path(), kVersion)->statement,
      fmt::format("X1 2 of Example, profile minimal, 2026-11-25, {0} cases, {0} pass, without "
                  "cases of a plug-in's file",
                  conformant().records.size()));
}

TEST(Submissions, AreOfWholeRunsAlone) {
  Report report = conformant();
  report.tier = "quick";
  EXPECT_EQ(verdict_of(report), "a submission is of the tier full, not quick");
  report = conformant();
  report.filtered = true;
  EXPECT_TRUE(has(verdict_of(report), "no patterns, --exclude or --shard"));
  report = conformant();
  report.interrupted = true;
  EXPECT_EQ(verdict_of(report), "there is no submission of a run that was interrupted");
  report = conformant();
  report.terms.declaration.reset();
  EXPECT_EQ(verdict_of(report), "a submission has a declaration: --declaration");
  report = conformant();
  report.profile = "mine.txt";
  EXPECT_EQ(verdict_of(report), "a submission is of a profile that Tenon knows, not of 'mine.txt'");
}

TEST(Submissions, WithDamagedFilesAreFaulty) {
  const auto folder = TemporaryFolder::create("tenon_submission");
  ASSERT_TRUE(write_submission(folder->path(), conformant()).ok());
  EXPECT_TRUE(has(verdict(folder->path(), "1.0"), "verify it with the Tenon that it is of"));
  const std::string names = *read_file(folder->file("cases.txt"));
  ASSERT_TRUE(write_file(folder->file("cases.txt"), names + "op/more\n").ok());
  EXPECT_EQ(verdict(folder->path()), "cases.txt is not that of DIGESTS");
  std::remove(folder->file("cases.txt").c_str());
  EXPECT_TRUE(has(verdict(folder->path()), "cases.txt"));
}

TEST(Submissions, HaveEachCaseOnce) {
  Report report = conformant();
  const std::string name = report.records.back().name;
  report.records.push_back(report.records.back());
  EXPECT_EQ(verdict_of(report), name + " has more than one result");
  report.records.resize(report.records.size() - 2);
  EXPECT_EQ(verdict_of(report), name + " has no result");
  report = conformant();
  report.records.push_back(record_of("op/tan/f64/prime/mixed", Outcome::kPass));
  EXPECT_EQ(verdict_of(report), "op/tan/f64/prime/mixed is no case of the profile minimal");
  report = conformant();
  report.terms.declaration->profile = *builtin_profile("training");
  EXPECT_EQ(verdict_of(report),
            "the declaration promises the profile training, and the run is of minimal");
}

TEST(Submissions, HaveOutcomesThatTheirEvidenceAllows) {
  Report report = conformant();
  CaseResult& first = report.records[0].result;
  const std::string name = report.records[0].name;
  first.steps = {};
  EXPECT_EQ(verdict_of(report), name + " is pass, but the device ran none of its steps");
  report.counts_steps = false;
  EXPECT_EQ(verdict_of(report),
            "results.json is of a device with an interface that counts no steps");
  report = conformant();
  report.records[0].result.ledger = {{"stablehlo.tan", ElementType::kF32, 9, 5, 1, "", "", ""}};
  EXPECT_EQ(verdict_of(report), name +
                                    " is pass, but stablehlo.tan of f32 has an error of 9.000 "
                                    "ULP, and its bound is 5");
  report.records[0].result.ledger[0].bound = 10;
  EXPECT_EQ(verdict_of(report), name + ": the bound of stablehlo.tan of f32 is 5, not 10");
  report.records[0].result.ledger[0].bound = 5;
  report.records[0].result.outcome = Outcome::kQualityWarning;
  EXPECT_EQ(verdict_of(report), name + " is quality-warning, but the declaration relaxes no bound");
  report.terms.declaration->relaxed = {{"stablehlo.tan", "f32", 8}};
  EXPECT_TRUE(has(verdict_of(report), "and its bound is 8"));
  report.terms.declaration->relaxed = {{"stablehlo.tan", "f32", 16}};
  EXPECT_EQ(verdict_of(report), "");
  report.records[0].result.ledger[0] = {
      "stablehlo.fft", ElementType::kC64, 1.5, 1, 1, "", "", "", 0, ErrorUnit::kBound};
  EXPECT_TRUE(has(verdict_of(report), "stablehlo.fft of c64 has an error of 1.500 of its bound"));
  report.records[0].result.ledger[0].error = 0.5;
  EXPECT_EQ(verdict_of(report), "");
  report.records[0].result.ledger[0].op = "stablehlo.tan";  // Is judged in ULP.
  EXPECT_TRUE(has(verdict_of(report), "the bound of stablehlo.tan of c64 is 0, not 1"));
  report.records[0].result.ledger.clear();
  report.records[0].result.outcome = Outcome::kFail;
  EXPECT_EQ(verdict_of(report), name + ": fail");
}

TEST(Submissions, HaveOutcomesByTheirTerms) {
  Report report = conformant();
  const std::string name = report.records[0].name;
  report.terms.waivers = {{name, "bug", "A", "link", *date_from_text("2027-01-01")}};
  EXPECT_EQ(verdict_of(report),
            name + " is pass, but by the declaration and the waivers it is unexpected-pass");
  report.records[0].result.outcome = Outcome::kFail;
  apply_terms(report.terms, report.records[0]);
  EXPECT_EQ(report.records[0].result.outcome, Outcome::kWaived);
  EXPECT_EQ(verdict_of(report), "");
  report.terms.waivers[0].expires = *date_from_text("2026-11-24");
  report.records[0].result.outcome = Outcome::kFail;
  apply_terms(report.terms, report.records[0]);
  EXPECT_TRUE(has(verdict_of(report), "expired on 2026-11-24"));
}

TEST(Submissions, HaveAPass) {
  Report report = conformant();
  report.terms.declaration->not_supported = {{"*", "it is not built yet"}};
  for (CaseRecord& each : report.records) {
    each.result.outcome = Outcome::kNotSupported;
    apply_terms(report.terms, each);
  }
  EXPECT_FALSE(has_passed(report));
  EXPECT_EQ(verdict_of(report), "no case passed");
}

TEST(Submissions, AreOfOneRun) {
  const Report report = conformant();
  EXPECT_EQ(verdict_of(report, "statement.json", [](json& s) { s["seed"] = 7; }),
            "statement.json is of another run than results.json: /seed");
  EXPECT_EQ(verdict_of(report, "statement.json", [](json& s) { s["command"] = "tenon"; }),
            "statement.json is of another run than results.json: /command");
  EXPECT_EQ(verdict_of(report, "statement.json", [](json& s) { s["tier"] = "smoke"; }),
            "statement.json is of another run than results.json: /tier");
  EXPECT_EQ(verdict_of(report, "results.json", [](json& r) { r["counts"]["fail"] = 99; }),
            "results.json: /counts/fail is not that of its cases");
  EXPECT_TRUE(has(verdict_of(report, "results.json", [](json& r) { r["device"] = {"X9"}; }),
                  "statement.json is of another run than results.json: /device"));
  EXPECT_EQ(verdict_of(report, "statement.json", [](json& s) { s["product"] = "X2"; }),
            "statement.json is of another device than declaration.json");
  EXPECT_EQ(verdict_of(report, "declaration.json",
                       [](json& d) {
                         d["not_supported"] = {{{"cases", "op/none/*"}, {"reason", "none"}}};
                       }),
            "results.json is of another declaration, or of other waivers");
  EXPECT_TRUE(has(verdict_of(report, "results.json", [](json& r) { r["cases"][0].erase("name"); }),
                  "not the record of a case"));
  EXPECT_TRUE(has(verdict_of(report, "statement.json", [](json& s) { s.erase("date"); }),
                  "not the statement of a submission"));
}

}  // namespace
}  // namespace tenon::conformance
