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

std::string_view colour_of(Outcome outcome) {
  if (outcome == Outcome::kPass) return "32";
  return is_failure(outcome) ? "1;31" : "33";
}

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

json to_json(const Report& report, bool times) {
  json cases = json::array();
  for (const CaseRecord& record : report.records) {
    json one = to_json(record);
    if (!times) one.erase("seconds");
    cases.push_back(std::move(one));
  }
  json counts;
  const auto numbers = counts_of(report.records);
  for (size_t i = 0; i < kOutcomeCount; ++i) {
    if (numbers[i] != 0) counts[std::string(name_of(static_cast<Outcome>(i)))] = numbers[i];
  }
  json made = {{"report", kReportVersion},     {"tenon", report.tenon},
               {"device", report.device},      {"command", report.command},
               {"seed", report.seed},          {"tier", report.tier},
               {"passed", has_passed(report)}, {"interrupted", report.interrupted},
               {"counts", std::move(counts)},  {"cases", std::move(cases)}};
  if (times) made["seconds"] = report.seconds;
  return made;
}

Result<Report> report_from_json(const json& value) {
  Report report;
  try {
    if (const int version = value.at("report").get<int>(); version != kReportVersion) {
      return invalid_argument("a report of version {}; this release reads version {}", version,
                              kReportVersion);
    }
    report.tenon = value.at("tenon").get<std::string>();
    report.device = value.at("device").get<std::vector<std::string>>();
    report.command = value.at("command").get<std::string>();
    report.seed = value.at("seed").get<uint64_t>();
    report.tier = value.at("tier").get<std::string>();
    report.interrupted = value.at("interrupted").get<bool>();
    report.seconds = value.value("seconds", 0.0);
    for (const json& one : value.at("cases")) {
      json with_time = one;
      if (!with_time.contains("seconds")) with_time["seconds"] = 0.0;
      TENON_ASSIGN(CaseRecord record, record_from_json(with_time));
      report.records.push_back(std::move(record));
    }
  } catch (const json::exception& error) {
    return invalid_argument("not a report of tenon conform: {}", error.what());
  }
  return report;
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
  if (!result.source.empty()) text += indented(result.source) + "\n";
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
  if (report.interrupted) text += "interrupted: the cases that are missing were not run\n";
  if (report.tier != "full") {
    text += fmt::format("the tier {} proves nothing: --tier full does\n", report.tier);
  }
  return text;
}

}  // namespace tenon::conformance
