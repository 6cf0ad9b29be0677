#include "conformance/report/console.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::conformance {
namespace {

std::string paint(std::string_view text, std::string_view code, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string_view colour_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "32";
    case Outcome::kQualityWarning:
    case Outcome::kWaived:
    case Outcome::kNotSupported:
      return "33";
    default:
      return "1;31";
  }
}

std::string indented(std::string_view text) {
  std::string lines = "    ";
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += "    ";
  }
  return lines;
}

std::string counts_text(const Report& report, bool colour) {
  const auto counts = counts_of(report.records);
  std::string text;
  for (size_t i = 0; i < kOutcomeCount; ++i) {
    if (counts[i] == 0) continue;
    const auto outcome = static_cast<Outcome>(i);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i],
                        paint(name_of(outcome), colour_of(outcome), colour));
  }
  return fmt::format("{} cases: {}\n", report.records.size(), text.empty() ? "none" : text);
}

// At most about a line of a text, whole characters.
std::string beginning(const std::string& text) {
  constexpr size_t kMost = 90;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// The errors nearest to their bounds, for people; the whole ledger is in the JSON report.
std::string worst_errors(const std::vector<CaseRecord>& records) {
  constexpr size_t kShown = 5;
  std::vector<LedgerEntry> ledger = ledger_of(records);
  std::erase_if(ledger, [](const LedgerEntry& e) { return e.bound == 0 && e.error == 0; });
  std::ranges::sort(ledger, std::greater(), [](const LedgerEntry& e) { return e.error / e.bound; });
  std::string text;
  for (size_t i = 0; i < std::min(kShown, ledger.size()); ++i) {
    const LedgerEntry& entry = ledger[i];
    const bool is_share = entry.unit == ErrorUnit::kBound;
    text += fmt::format("  {} of {}: {}{}{}{}\n", entry.op, name_of(entry.type),
                        error_text(entry.error, entry.unit),
                        is_share ? "" : fmt::format(" of {:g}", entry.bound),
                        entry.relaxed > 0 ? fmt::format(", relaxed to {:g}", entry.relaxed) : "",
                        entry.operands.empty() ? "" : " at " + beginning(entry.operands));
  }
  return text.empty() ? text : "errors nearest to their bounds:\n" + text;
}

// Names and messages of the first cases of an outcome.
std::string listed(const std::vector<CaseRecord>& records, Outcome outcome,
                   std::string_view heading) {
  constexpr size_t kShown = 10;
  std::string text;
  size_t count = 0;
  for (const CaseRecord& record : records) {
    if (record.result.outcome != outcome || ++count > kShown) continue;
    const CaseResult& result = record.result;
    text += fmt::format("  {}: {}\n", record.name,
                        result.excuse.empty() ? result.message : result.excuse);
  }
  if (count == 0) return {};
  if (count > kShown) text += fmt::format("  and {} more\n", count - kShown);
  return fmt::format("{}:\n{}", heading, text);
}

std::string slowest_cases(const Report& report) {
  constexpr size_t kShown = 10;
  std::string text = "slowest cases:\n";
  for (const CaseRecord* const each : slowest(report.records, kShown)) {
    text += fmt::format("  {:.3f} s {}\n", each->seconds, each->name);
  }
  return text;
}

std::string first_failure(const Report& report, bool colour) {
  const auto first = std::ranges::find_if(
      report.records, [](const CaseRecord& record) { return is_failure(record.result); });
  if (first == report.records.end()) return {};
  return "first failure:\n" + failure_text(*first, report.command, colour) + "\n";
}

}  // namespace

std::string failure_line(const CaseRecord& record, bool colour) {
  const std::string_view message = record.result.message;
  return fmt::format(
      "{} {}: {}\n",
      paint(name_of(record.result.outcome), colour_of(record.result.outcome), colour), record.name,
      message.substr(0, message.find('\n')));
}

std::string failure_text(const CaseRecord& record, const std::string& command, bool colour) {
  const CaseResult& result = record.result;
  std::string text =
      fmt::format("{} {}\n", paint(name_of(result.outcome), colour_of(result.outcome), colour),
                  paint(record.name, "1", colour));
  text += fmt::format("  {}\n", result.message);
  if (result.blame != Blame::kNone) {
    text += fmt::format("  to blame: {}\n", paint(name_of(result.blame), "1", colour));
  }
  if (!result.step.empty()) text += fmt::format("  function: {}\n", result.step);
  if (!result.arguments.empty()) text += fmt::format("  arguments: {}\n", result.arguments);
  if (!result.listing.empty()) {
    text += "  the kernel, with the interpreter's values where it stores the wrong element:\n" +
            indented(result.listing.substr(0, result.listing.find_last_not_of('\n') + 1)) + "\n";
  }
  if (!result.reproducer.empty()) {
    text += "  the program:\n" + indented(result.reproducer) + "\n";
  }
  text += fmt::format("  again: {} '{}'\n", command, record.name);
  return text;
}

std::string summary_text(const Report& report, bool colour, bool verbose) {
  program::StepCounts steps;
  for (const CaseRecord& record : report.records) steps += record.result.steps;
  std::string text = first_failure(report, colour) + counts_text(report, colour);
  if (report.counts_steps) {
    text += fmt::format("steps on the device: {} kernels, {} library calls; on the host: {}\n",
                        steps.kernels, steps.calls, steps.host);
  }
  text += listed(report.records, Outcome::kQualityWarning, "quality warnings");
  text += listed(report.records, Outcome::kWaived, "waived");
  text += listed(report.records, Outcome::kUnexpectedPass, "unexpected passes");
  for (const Waiver& each : report.unused_waivers) {
    text += fmt::format("the waiver of '{}' ({}) matches no case\n", each.cases, each.owner);
  }
  text += worst_errors(report.records);
  if (verbose) text += slowest_cases(report);
  if (report.interrupted) text += "interrupted: the cases that are missing were not run\n";
  if (report.tier == "smoke" || report.tier == "quick") {
    text += fmt::format("the tier {} proves nothing: --tier full does\n", report.tier);
  }
  return text;
}

}  // namespace tenon::conformance
