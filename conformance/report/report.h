// conformance/report/: what a run found, for people and programs.
#pragma once

#include <array>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "conformance/run/record.h"

namespace tenon::conformance {

struct Report {
  std::string tenon;                ///< The version of the suite.
  std::vector<std::string> device;  ///< The tested device: name, version, properties.
  std::string command;              ///< How to run it again.
  uint64_t seed = 0;
  std::string tier;
  bool interrupted = false;
  double seconds = 0;
  std::vector<CaseRecord> records;  ///< In the order of the case list.
};

std::array<size_t, kOutcomeCount> counts_of(const std::vector<CaseRecord>& records);
/// Whether no outcome is a failure, at least one case ran, and the run was not interrupted.
bool has_passed(const Report& report);
/// The largest error of each op and type, over all cases.
std::vector<LedgerEntry> ledger_of(const std::vector<CaseRecord>& records);

/// The whole report, with the ledger over all cases.
nlohmann::json to_json(const Report& report);
/// A failure in full: name, outcome, message, the component to blame, how to run it alone.
std::string failure_text(const CaseRecord& record, const std::string& command, bool colour);
/// The last lines of a run: counts by outcome, the worst errors, whether it proves anything.
std::string summary_text(const Report& report, bool colour);

}  // namespace tenon::conformance
