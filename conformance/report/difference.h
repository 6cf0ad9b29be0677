// The difference of two reports: outcomes and errors, not times.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace tenon::conformance {

struct OutcomeChange {
  std::string name;
  std::optional<Outcome> before;  ///< Absent: the first report does not have the case.
  std::optional<Outcome> after;
  bool is_worse = false;
  bool is_better = false;  ///< Neither: a failure of another kind.
};

struct LedgerChange {
  std::string op;
  ElementType type{};
  ErrorUnit unit{};
  std::optional<double> before;  ///< Absent: the first report did not measure it.
  std::optional<double> after;
  bool is_worse = false;
};

struct ReportDifference {
  std::vector<std::string> notes;  ///< Other differences: of device, tier, seed, suite.
  std::vector<OutcomeChange> outcomes;
  std::vector<LedgerChange> ledger;

  size_t count_worse() const;
};

/// An outcome is worse if it is a failure and was none, or else is further from a pass: a quality
/// warning, then a waived or excused case. A case that is gone is worse, and so is a new one that
/// fails. An error is worse if it is greater, or is measured no longer (exact ops are measured
/// only while they are relaxed); a new one if it is beyond
/// its bound.
ReportDifference difference_of(const Report& before, const Report& after);

nlohmann::json to_json(const ReportDifference& difference);
std::string difference_text(const ReportDifference& difference);

}  // namespace tenon::conformance
