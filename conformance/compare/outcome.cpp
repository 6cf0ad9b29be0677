#include "conformance/compare/outcome.h"

#include <fmt/format.h>

#include <cmath>

namespace tenon::conformance {
namespace {

constexpr std::string_view kOutcomeNames[] = {
    "pass", "quality-warning", "waived",  "not-run",     "not-supported", "unexpected-pass",
    "fail", "crash",           "timeout", "device-lost", "harness-error"};
static_assert(std::size(kOutcomeNames) == kOutcomeCount);
constexpr std::string_view kBlameNames[] = {"",          "lowering", "kernel", "native call",
                                            "interface", "host"};

}  // namespace

std::string_view name_of(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

std::optional<Outcome> outcome_from_name(std::string_view name) {
  for (size_t i = 0; i < kOutcomeCount; ++i) {
    if (kOutcomeNames[i] == name) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

bool is_pass(Outcome outcome) {
  return outcome == Outcome::kPass || outcome == Outcome::kQualityWarning;
}

bool is_failure(const CaseResult& result) {
  if (result.outcome == Outcome::kNotSupported) return result.excuse.empty();
  return !is_pass(result.outcome) && result.outcome != Outcome::kWaived;
}

std::string_view name_of(Blame blame) { return kBlameNames[static_cast<size_t>(blame)]; }

std::string_view name_of(ErrorUnit unit) { return unit == ErrorUnit::kUlp ? "ulp" : "bound"; }

std::string error_text(double error, ErrorUnit unit) {
  const std::string number = std::isinf(error) ? "no number" : fmt::format("{:.3f}", error);
  return number + (unit == ErrorUnit::kUlp ? " ULP" : " of its bound");
}

}  // namespace tenon::conformance
