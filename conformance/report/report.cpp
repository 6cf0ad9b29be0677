#include "conformance/report/report.h"

#include <algorithm>
#include <map>

#include "conformance/compare/ledger.h"
#include "conformance/terms/json_file.h"
#include "core/base/digest.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

constexpr int kReportVersion = 3;
constexpr std::string_view kHasNames[] = {"nothing", "interface", "plugin"};

}  // namespace

std::string suite_digest(const std::vector<ConformanceCase>& cases) {
  std::string names;
  for (const ConformanceCase& each : cases) names += each.name + '\n';
  return serial::digest_of(names);
}

std::array<size_t, kOutcomeCount> counts_of(const std::vector<CaseRecord>& records) {
  std::array<size_t, kOutcomeCount> counts = {};
  for (const CaseRecord& record : records) ++counts[static_cast<size_t>(record.result.outcome)];
  return counts;
}

bool has_passed(const Report& report) {
  const auto fails = [](const CaseRecord& record) { return is_failure(record.result); };
  const auto passes = [](const CaseRecord& record) { return is_pass(record.result.outcome); };
  return !report.interrupted && std::ranges::none_of(report.records, fails) &&
         (report.filtered ? !report.records.empty() : std::ranges::any_of(report.records, passes));
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

std::vector<const CaseRecord*> slowest(const std::vector<CaseRecord>& records, size_t count) {
  std::vector<const CaseRecord*> order;
  for (const CaseRecord& each : records) order.push_back(&each);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::ranges::partial_sort(order, end, std::greater(), &CaseRecord::seconds);
  order.erase(end, order.end());
  return order;
}

json to_json(const Report& report) {
  json cases = json::array();
  for (const CaseRecord& record : report.records) cases.push_back(to_json(record));
  json ledger = json::array();
  for (const LedgerEntry& entry : ledger_of(report.records)) ledger.push_back(to_json(entry));
  json counts = json::object();
  const auto numbers = counts_of(report.records);
  for (size_t i = 0; i < kOutcomeCount; ++i) {
    if (numbers[i] != 0) counts[std::string(name_of(static_cast<Outcome>(i)))] = numbers[i];
  }
  json made = {{"report", kReportVersion},
               {"tenon", report.tenon},
               {"suite", report.suite},
               {"device", report.device},
               {"counts_steps", report.counts_steps},
               {"has", kHasNames[static_cast<size_t>(report.has)]},
               {"command", report.command},
               {"date", report.date},
               {"seed", report.seed},
               {"tier", report.tier},
               {"filtered", report.filtered},
               {"passed", has_passed(report)},
               {"interrupted", report.interrupted},
               {"seconds", report.seconds},
               {"counts", std::move(counts)},
               {"ledger", std::move(ledger)},
               {"waivers", to_json(report.terms.waivers)},
               {"unused_waivers", to_json(report.unused_waivers)},
               {"cases", std::move(cases)}};
  if (!report.profile.empty()) made["profile"] = report.profile;
  if (report.terms.declaration) made["declaration"] = to_json(*report.terms.declaration);
  return made;
}

namespace {

// The members that are not terms. Throws as the library does.
Status read_members(const json& document, Report& report) {
  const int version = document.at("report").get<int>();
  if (version != kReportVersion) {
    return invalid_argument("a report of version {}: this Tenon reads version {}", version,
                            kReportVersion);
  }
  report.tenon = document.at("tenon").get<std::string>();
  report.suite = document.at("suite").get<std::string>();
  report.device = document.at("device").get<std::vector<std::string>>();
  report.counts_steps = document.at("counts_steps").get<bool>();
  const auto has = document.at("has").get<std::string>();
  const auto* const found = std::ranges::find(kHasNames, has);
  if (found == std::end(kHasNames)) return invalid_argument("a report of a device with '{}'", has);
  report.has = static_cast<CaseNeeds>(found - std::begin(kHasNames));
  report.command = document.at("command").get<std::string>();
  report.date = document.at("date").get<std::string>();
  report.seed = document.at("seed").get<uint64_t>();
  report.tier = document.at("tier").get<std::string>();
  report.profile = document.value("profile", std::string());
  report.filtered = document.at("filtered").get<bool>();
  report.interrupted = document.at("interrupted").get<bool>();
  report.seconds = document.at("seconds").get<double>();
  for (const json& each : document.at("cases")) {
    TENON_ASSIGN(CaseRecord record, record_from_json(each));
    report.records.push_back(std::move(record));
  }
  return {};
}

}  // namespace

Result<Report> report_from_json(const json& document) {
  Report report;
  try {
    TENON_TRY(read_members(document, report));
    if (document.contains("declaration")) {
      TENON_ASSIGN(report.terms.declaration, declaration_from_json(document.at("declaration")));
    }
    TENON_ASSIGN(report.terms.waivers, waivers_from_json(document.at("waivers")));
    TENON_ASSIGN(report.unused_waivers, waivers_from_json(document.at("unused_waivers")));
  } catch (const json::exception& error) {  // The library reports through exceptions.
    return invalid_argument("not a report of tenon conform --json: {}", error.what());
  }
  return report;
}

Result<Report> read_report(const std::string& path) {
  TENON_ASSIGN(const json document, read_json_file(path));
  auto report = report_from_json(document);
  if (!report) return Error(std::move(report.error()).with_context(path));
  return report;
}

}  // namespace tenon::conformance
