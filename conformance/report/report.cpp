#include "conformance/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/compare/ledger.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

constexpr int kReportVersion = 1;

std::string paint(std::string_view text, std::string_view code, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string_view colour_of(Outcome outcome) { return is_failure(outcome) ? "1;31" : "32"; }

std::string indented(std::string_view text) {
  std::string lines = "    ";
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += "    ";
  }
  return lines;
}

}  // namespace

std::array<size_t, kOutcomeCount> counts_of(const std::vector<CaseRecord>& records) {
  std::array<size_t, kOutcomeCount> counts = {};
  for (const CaseRecord& record : records) ++counts[static_cast<size_t>(record.result.outcome)];
  return counts;
}

bool has_passed(const Report& report) {
  return !report.interrupted && !report.records.empty() &&
         std::ranges::none_of(report.records, [](const CaseRecord& record) {
           return is_failure(record.result.outcome);
         });
}

std::vector<LedgerEntry> ledger_of(const std::vector<CaseRecord>& records) {
  std::map<std::pair<std::string, ElementType>, LedgerEntry> worst;
  for (const CaseRecord& record : records) {
    for (const LedgerEntry& entry : record.result.ledger) merge(worst, entry);
  }
  std::vector<LedgerEntry> list;
  for (auto& [key, entry] : worst) list.push_back(std::move(entry));
  return list;
}

json to_json(const Report& report) {
  json cases = json::array();
  for (const CaseRecord& record : report.records) cases.push_back(to_json(record));
  json ledger = json::array();
  for (const LedgerEntry& entry : ledger_of(report.records)) ledger.push_back(to_json(entry));
  json counts;
  const auto numbers = counts_of(report.records);
  for (size_t i = 0; i < kOutcomeCount; ++i) {
    if (numbers[i] != 0) counts[std::string(name_of(static_cast<Outcome>(i)))] = numbers[i];
  }
  return {{"report", kReportVersion},     {"tenon", report.tenon},
          {"device", report.device},      {"command", report.command},
          {"seed", report.seed},          {"tier", report.tier},
          {"passed", has_passed(report)}, {"interrupted", report.interrupted},
          {"seconds", report.seconds},    {"counts", std::move(counts)},
          {"ledger", std::move(ledger)},  {"cases", std::move(cases)}};
}

// The errors nearest to their bounds, for people; the whole ledger is in the JSON report.
std::string worst_errors(const std::vector<CaseRecord>& records) {
  constexpr size_t kShown = 5;
  std::vector<LedgerEntry> ledger = ledger_of(records);
  std::ranges::sort(ledger, std::greater(), [](const LedgerEntry& e) { return e.ulp / e.bound; });
  std::string text;
  for (size_t i = 0; i < std::min(kShown, ledger.size()); ++i) {
    const LedgerEntry& entry = ledger[i];
    text +=
        fmt::format("  {} of {}: {:.3f} ULP of {:g}{}\n", entry.op, name_of(entry.type), entry.ulp,
                    entry.bound, entry.operands.empty() ? "" : " at " + entry.operands);
  }
  return text.empty() ? text : "errors nearest to their bounds:\n" + text;
}

std::string failure_text(const CaseRecord& record, const std::string& command, bool colour) {
  const CaseResult& result = record.result;
  std::string text =
      fmt::format("{} {}\n", paint(name_of(result.outcome), colour_of(result.outcome), colour),
                  paint(record.name, "1", colour));
  text += fmt::format("  {}\n", result.message);
  if (result.blame != Blame::kNone) {
    text += fmt::format("  to blame: {}{}{}\n", name_of(result.blame),
                        result.step.empty() ? "" : ", ", result.step);
  }
  if (!result.reproducer.empty()) {
    text += "  the program, reduced:\n" + indented(result.reproducer) + "\n";
  }
  text += fmt::format("  again: {} '{}'\n", command, record.name);
  return text;
}

std::string summary_text(const Report& report, bool colour) {
  const auto counts = counts_of(report.records);
  std::string text;
  for (size_t i = 0; i < kOutcomeCount; ++i) {
    if (counts[i] == 0) continue;
    const auto outcome = static_cast<Outcome>(i);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i],
                        paint(name_of(outcome), colour_of(outcome), colour));
  }
  program::StepCounts steps;
  for (const CaseRecord& record : report.records) steps += record.result.steps;
  text = fmt::format("{} cases: {}\n", report.records.size(), text.empty() ? "none" : text);
  text += fmt::format("steps on the device: {} kernels, {} library calls; on the host: {}\n",
                      steps.kernels, steps.calls, steps.host);
  text += worst_errors(report.records);
  if (report.interrupted) text += "interrupted: the cases that are missing were not run\n";
  if (report.tier != "full") {
    text += fmt::format("the tier {} proves nothing: --tier full does\n", report.tier);
  }
  return text;
}

}  // namespace tenon::conformance
