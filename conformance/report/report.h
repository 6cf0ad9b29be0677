// conformance/report/: the results of a run, for people and programs.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/compare/record.h"
#include "conformance/terms/terms.h"

namespace tenon::conformance {

struct Report {
  std::string tenon;                      ///< The version of Tenon.
  std::string suite;                      ///< The digest of the case list (suite_digest).
  std::vector<std::string> device;        ///< The tested device: name, version, properties.
  bool counts_steps = true;               ///< Whether the device says which steps it ran.
  CaseNeeds has = CaseNeeds::kInterface;  ///< Its interfaces: cases that need more are left out.
  std::string command;                    ///< How to run it again.
  std::string date;                       ///< The day on which it began, in UTC: "2026-12-31".
  uint64_t seed = 0;
  std::string tier;
  std::string profile;    ///< Empty: all cases of the tier.
  bool filtered = false;  ///< Whether patterns or a shard left out cases.
  bool interrupted = false;
  double seconds = 0;
  std::vector<CaseRecord> records;  ///< In the order of the case list, with the terms applied.
  Terms terms;
  std::vector<Waiver> unused_waivers;  ///< Those that match no case of the suite.
};

/// The digest of the names of the cases: two suites with the same one have the same cases.
std::string suite_digest(const std::vector<ConformanceCase>& cases);

std::array<size_t, kOutcomeCount> counts_of(const std::vector<CaseRecord>& records);
/// Whether no result is a failure, the run was not interrupted, and at least one case passed, or
/// ran if only some were chosen.
bool has_passed(const Report& report);
/// The largest error of each op and type, over all cases.
std::vector<LedgerEntry> ledger_of(const std::vector<CaseRecord>& records);
/// The cases that took longest, longest first.
std::vector<const CaseRecord*> slowest(const std::vector<CaseRecord>& records, size_t count);

/// The whole report, with the ledger over all cases.
nlohmann::json to_json(const Report& report);
/// Errors: a member is missing, or has another type.
Result<Report> report_from_json(const nlohmann::json& document);
/// Reads a file. Errors name it.
Result<Report> read_report(const std::string& path);

}  // namespace tenon::conformance
