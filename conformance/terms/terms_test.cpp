// Declarations, waivers and profiles: their files, and how they change outcomes.
#include "conformance/terms/terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/cases/case.h"
#include "conformance/compare/pattern.h"
#include "conformance/terms/json_file.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

json declaration() {
  return {{"device", "X1"},
          {"vendor", "Example"},
          {"version", "2.0"},
          {"profile", "minimal"},
          {"not_supported", {{{"cases", "op/*/f64/*"}, {"reason", "no f64"}}}},
          {"relaxed", {{{"op", "stablehlo.t*"}, {"type", "f32"}, {"ulp", 16}}}}};
}

json waiver() {
  return {{"cases", "op/tan/*"},
          {"reason", "a bug"},
          {"owner", "A. Smith"},
          {"link", "https://example.com/7"},
          {"expires", "2026-12-31"}};
}

CaseRecord found_record(const std::string& name, Outcome outcome) {
  CaseRecord record;
  record.name = name;
  record.result.outcome = outcome;
  return record;
}

TEST(JsonFiles, NameThePlaceOfAnError) {
  const auto bad = parse_json("{\n  \"a\": 1,\n  oops\n}", "x.json");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().position(), (SourcePosition{"x.json", 3, 3})) << bad.error().to_string();
  EXPECT_NE(bad.error().message().find("syntax error"), std::string::npos);
  EXPECT_EQ(parse_json("", "x.json").error().position(), (SourcePosition{"x.json", 1, 1}));
}

TEST(Declarations, AreTheSameFromJson) {
  const auto read = declaration_from_json(declaration());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read), declaration());
  EXPECT_EQ(relaxed_ulp(read->relaxed, "stablehlo.tan", ElementType::kF32), 16);
  EXPECT_EQ(relaxed_ulp(read->relaxed, "stablehlo.tan", ElementType::kF64), 0);
  EXPECT_EQ(relaxed_ulp(read->relaxed, "chlo.tan", ElementType::kF32), 0);
}

TEST(Declarations, ErrorsHaveAPlace) {
  const auto error = [](auto change) {
    json document = declaration();
    change(document);
    const auto read = declaration_from_json(document);
    return read ? std::string("none") : read.error().message();
  };
  EXPECT_EQ(error([](json& d) { d = json::array(); }), "/: expected an object, found an array");
  EXPECT_EQ(error([](json& d) { d.erase("vendor"); }), "/vendor: this member is missing");
  EXPECT_EQ(error([](json& d) { d["vendor"] = 3; }), "/vendor: expected text, found a number");
  EXPECT_EQ(error([](json& d) { d["vendor"] = ""; }), "/vendor: expected text, found an empty one");
  EXPECT_EQ(error([](json& d) { d["vender"] = "x"; }), "/vender: there is no such member");
  EXPECT_EQ(error([](json& d) { d["profile"] = "big"; }),
            "/profile: there is no profile 'big': expected minimal, inference, training, full");
  EXPECT_EQ(error([](json& d) { d["relaxed"] = "x"; }),
            "/relaxed: expected a list, found a string");
  EXPECT_EQ(error([](json& d) { d["relaxed"][0]["ulp"] = "x"; }),
            "/relaxed/0/ulp: expected a number, found a string");
  EXPECT_EQ(error([](json& d) { d["relaxed"][0]["ulp"] = -1; }),
            "/relaxed/0/ulp: expected a number of units above 0");
  EXPECT_EQ(error([](json& d) { d["not_supported"][0].erase("reason"); }),
            "/not_supported/0/reason: this member is missing");
}

TEST(Waivers, AreTheSameFromJsonAndNeedEveryMember) {
  const auto read = waivers_from_json(json::array({waiver()}));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read), json::array({waiver()}));
  for (const char* const member : {"cases", "reason", "owner", "link", "expires"}) {
    json one = waiver();
    one.erase(member);
    EXPECT_EQ(waivers_from_json(json::array({one})).error().message(),
              fmt::format("/0/{}: this member is missing", member));
  }
  for (const char* const date : {"2026-13-01", "2026-02-30", "26-01-01", "2026/01/01", "soon"}) {
    json one = waiver();
    one["expires"] = date;
    EXPECT_EQ(waivers_from_json(json::array({one})).error().message(),
              fmt::format("/0/expires: '{}' is no date: expected YYYY-MM-DD", date));
  }
  EXPECT_FALSE(waivers_from_json(waiver()));
}

TEST(Waivers, ExpireAfterTheirLastDay) {
  const auto waivers = waivers_from_json(json::array({waiver()}));
  ASSERT_TRUE(waivers);
  EXPECT_TRUE(check_expiry(*waivers, *date_from_text("2026-12-31")).ok());
  EXPECT_EQ(check_expiry(*waivers, *date_from_text("2027-01-01")).message(),
            "the waiver of 'op/tan/*' (A. Smith) expired on 2026-12-31");
  EXPECT_EQ(to_string(today()).size(), 10u);
}

struct JudgedCase {
  const char* name;
  Outcome found;
  Outcome expected;
  bool is_failure;
};

void expect_judged(const Terms& terms, std::initializer_list<JudgedCase> cases) {
  for (const JudgedCase& each : cases) {
    CaseRecord record = found_record(each.name, each.found);
    apply_terms(terms, record);
    EXPECT_EQ(record.result.outcome, each.expected) << each.name << name_of(each.found);
    EXPECT_EQ(is_failure(record.result), each.is_failure) << each.name << name_of(each.found);
    EXPECT_EQ(record.result.found.has_value(), each.found != each.expected);
  }
}

TEST(Terms, WithoutThemOnlyPassesAreRight) {
  expect_judged({}, {{"op/tan/f32/a", Outcome::kPass, Outcome::kPass, false},
                     {"op/tan/f32/a", Outcome::kNotSupported, Outcome::kNotSupported, true},
                     {"op/tan/f32/a", Outcome::kNotRun, Outcome::kNotRun, true},
                     {"op/tan/f32/a", Outcome::kFail, Outcome::kFail, true}});
}

TEST(Terms, ADeclarationExcusesWhatItSaysAlone) {
  Terms terms;
  terms.declaration = *declaration_from_json(declaration());
  expect_judged(terms, {{"op/add/f64/a", Outcome::kNotSupported, Outcome::kNotSupported, false},
                        {"op/add/f64/a", Outcome::kPass, Outcome::kUnexpectedPass, true},
                        {"op/add/f64/a", Outcome::kQualityWarning, Outcome::kUnexpectedPass, true},
                        {"op/add/f64/a", Outcome::kFail, Outcome::kFail, true},
                        {"op/add/f64/a", Outcome::kCrash, Outcome::kCrash, true},
                        // Promised.
                        {"op/add/f32/a", Outcome::kNotSupported, Outcome::kNotSupported, true},
                        {"op/add/f32/a", Outcome::kQualityWarning, Outcome::kQualityWarning, false},
                        // Outside of the profile: not promised, and welcome.
                        {"op/sort/f32/a", Outcome::kNotSupported, Outcome::kNotSupported, false},
                        {"op/sort/f32/a", Outcome::kPass, Outcome::kPass, false},
                        {"op/sort/f32/a", Outcome::kFail, Outcome::kFail, true}});
}

TEST(Terms, AWaiverAdmitsFailuresAndExpectsThem) {
  Terms terms;
  terms.waivers = *waivers_from_json(json::array({waiver()}));
  expect_judged(terms, {{"op/tan/f32/a", Outcome::kFail, Outcome::kWaived, false},
                        {"op/tan/f32/a", Outcome::kCrash, Outcome::kWaived, false},
                        {"op/tan/f32/a", Outcome::kNotRun, Outcome::kWaived, false},
                        {"op/tan/f32/a", Outcome::kPass, Outcome::kUnexpectedPass, true},
                        {"op/tan/f32/a", Outcome::kHarnessError, Outcome::kHarnessError, true},
                        {"op/sin/f32/a", Outcome::kFail, Outcome::kFail, true}});
  const std::vector<std::string> names = {"op/sin/f32/a"};
  ASSERT_EQ(unused_waivers(terms, names).size(), 1u);
  const std::vector<std::string> more = {"op/sin/f32/a", "op/tan/f32/a"};
  EXPECT_TRUE(unused_waivers(terms, more).empty());
}

TEST(Profiles, AreReadLineByLine) {
  const auto read = parse_profile("mine", "# all of add\nop/add/*  # here\n\n  -*/f64/*\r\n");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->has("op/add/f32/a"));
  EXPECT_FALSE(read->has("op/add/f64/a"));
  EXPECT_FALSE(read->has("op/sub/f32/a"));
  EXPECT_EQ(parse_profile("mine", "# nothing\n-op/*").error().message(),
            "the profile 'mine' has no pattern");
  EXPECT_FALSE(find_profile("/nowhere/profile.txt"));
}

TEST(Profiles, LeaveOutTypes) {
  const auto read = parse_profile("mine", "*\nwithout f64 s2\nwithout u8\n");
  ASSERT_TRUE(read);
  for (const char* name :
       {"op/add/f64/a", "op/convert/f32/to_f64/a", "kernel/op/convert/f64_to_f32",
        "kernel/op/convert/f32_to_f64", "kernel/op/add/u8", "op/iota/s2"}) {
    EXPECT_FALSE(read->has(name)) << name;
  }
  for (const char* name : {"op/add/f32/a", "op/convert/f32/to_s8/a", "op/convert/f32/to_s20/a",
                           "kernel/op/convert/f32_to_bf16", "without/f32"}) {
    EXPECT_TRUE(read->has(name)) << name;
  }
  // As the page says: arithmetic of f32, s32 and pred.
  const auto minimal = builtin_profile("minimal").value();
  for (const ConformanceCase& each : all_cases()) {
    if (!each.name.starts_with("kernel/op/convert/") || !minimal.has(each.name)) continue;
    const std::string pair = each.name.substr(std::string_view("kernel/op/convert/").size());
    for (const std::string& type :
         {pair.substr(0, pair.find("_to_")), pair.substr(pair.find("_to_") + 4)}) {
      EXPECT_TRUE(type == "f32" || type == "s32" || type == "pred") << each.name;
    }
  }
}

TEST(Patterns, HaveStarsAndQuestionMarksAlone) {
  EXPECT_TRUE(matches("op/*/f32/*", "op/add/f32/one/ordinary"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "a_b_b_c"));
  EXPECT_TRUE(matches("a?c**", "abc"));
  EXPECT_FALSE(matches("a?c", "ac"));
  EXPECT_FALSE(matches("op/add", "op/add/f32"));
  EXPECT_FALSE(matches("a*b", "a_b_c"));
  EXPECT_FALSE(matches("[ab]", "a"));
  EXPECT_TRUE(matches("data/[x]\\y", "data/[x]\\y"));
}

TEST(Profiles, EachHasTheCasesOfThoseBeforeIt) {
  std::set<std::string> before;
  for (const std::string_view name : profile_names()) {
    const auto profile = builtin_profile(name);
    ASSERT_TRUE(profile) << profile.error().to_string();
    std::set<std::string> here;
    for (const ConformanceCase& each : all_cases()) {
      if (profile->has(each.name)) here.insert(each.name);
    }
    EXPECT_GT(here.size(), before.size()) << name;
    EXPECT_TRUE(std::ranges::includes(here, before)) << name;
    before = std::move(here);
  }
  EXPECT_EQ(before.size(), all_cases().size());
}

TEST(Profiles, HaveNoPatternWithoutACase) {
  for (const std::string_view name : profile_names()) {
    const auto profile = builtin_profile(name);
    ASSERT_TRUE(profile);
    for (const std::string& pattern : profile->patterns) {
      const bool has_case = std::ranges::any_of(
          all_cases(), [&](const ConformanceCase& each) { return matches(pattern, each.name); });
      EXPECT_TRUE(has_case) << name << ": " << pattern;
    }
  }
}

}  // namespace
}  // namespace tenon::conformance
