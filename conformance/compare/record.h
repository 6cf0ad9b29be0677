// The result of a case, as JSON and back: the line of a worker and of the journal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "conformance/compare/outcome.h"
#include "core/base/status.h"

namespace tenon::conformance {

struct CaseRecord {
  std::string name;
  CaseResult result;
  double seconds = 0;
};

nlohmann::json to_json(const LedgerEntry& entry);
nlohmann::json to_json(const CaseRecord& record);
/// Errors: a member is missing, or has another type.
Result<CaseRecord> record_from_json(const nlohmann::json& json);

}  // namespace tenon::conformance
