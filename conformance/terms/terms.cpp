#include "conformance/terms/terms.h"

#include <algorithm>

#include "conformance/compare/pattern.h"

namespace tenon::conformance {
namespace {

void change(CaseResult& result, Outcome outcome) {
  result.found = result.outcome;
  result.outcome = outcome;
}

void apply_declaration(const Declaration& declaration, CaseRecord& record) {
  CaseResult& result = record.result;
  if (const UnsupportedCases* const stated = declaration.not_supporting(record.name)) {
    if (result.outcome == Outcome::kNotSupported) {
      result.excuse = stated->reason;
    } else if (is_pass(result.outcome)) {
      change(result, Outcome::kUnexpectedPass);
      result.message =
          fmt::format("it passes, but is declared as not supported: {}", stated->reason);
    }
  } else if (!declaration.promises(record.name) && result.outcome == Outcome::kNotSupported) {
    result.excuse = fmt::format("not in the profile {}", declaration.profile->name);
  }
}

void apply_waiver(const Waiver& waiver, CaseRecord& record) {
  CaseResult& result = record.result;
  if (is_pass(result.outcome)) {
    change(result, Outcome::kUnexpectedPass);
    result.message = fmt::format("it passes, but is waived: {}", waiver.reason);
  } else if (is_failure(result) && result.outcome != Outcome::kHarnessError &&
             result.outcome != Outcome::kUnexpectedPass) {
    change(result, Outcome::kWaived);
    result.excuse = fmt::format("{} ({}, until {}, {})", waiver.reason, waiver.owner,
                                to_string(waiver.expires), waiver.link);
  }
}

}  // namespace

std::span<const RelaxedBound> Terms::relaxed() const {
  if (!declaration) return {};
  return declaration->relaxed;
}

void apply_terms(const Terms& terms, CaseRecord& record) {
  if (terms.declaration) apply_declaration(*terms.declaration, record);
  const auto waiver = std::ranges::find_if(
      terms.waivers, [&](const Waiver& each) { return matches(each.cases, record.name); });
  if (waiver != terms.waivers.end()) apply_waiver(*waiver, record);
}

std::vector<Waiver> unused_waivers(const Terms& terms, std::span<const std::string> names) {
  std::vector<Waiver> unused;
  for (const Waiver& each : terms.waivers) {
    const bool is_used = std::ranges::any_of(
        names, [&](const std::string& name) { return matches(each.cases, name); });
    if (!is_used) unused.push_back(each);
  }
  return unused;
}

}  // namespace tenon::conformance
