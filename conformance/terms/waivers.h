// Waivers: failures that a vendor knows, each for a reason and for a limited time.
//
//   [{"cases": "op/tan/f32/prime/extreme", "reason": "wrong beyond 2^80", "owner": "A. Smith",
//     "link": "https://example.com/bugs/7", "expires": "2026-12-31"}]
//
// Thread-safety: values.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::conformance {

using Date = std::chrono::year_month_day;

struct Waiver {
  std::string cases;  ///< A pattern of names.
  std::string reason;
  std::string owner;
  std::string link;
  Date expires;  ///< The last day on which it holds.
};

/// "2026-12-31". Errors: another form, or no such day.
Result<Date> date_from_text(std::string_view text);
std::string to_string(const Date& date);
/// The date of today in UTC.
Date today();

/// Errors name the member by its place ("/0/expires").
Result<std::vector<Waiver>> waivers_from_json(const nlohmann::json& document);
/// Reads a file. Errors name it too.
Result<std::vector<Waiver>> read_waivers(const std::string& path);
nlohmann::json to_json(const std::vector<Waiver>& waivers);

/// Errors: waivers that have expired before `date`, all of them named.
Status check_expiry(const std::vector<Waiver>& waivers, const Date& date);

}  // namespace tenon::conformance
