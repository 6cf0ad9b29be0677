#include <nlohmann/json.hpp>

#include "conformance/embedded_files.h"
#include "conformance/report/formats.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

// More would make the page too large for a browser; the JSON report has all.
constexpr size_t kMostDetails = 2000;

json details_of(const CaseResult& result) {
  json made = {{"message", result.message}};
  const std::pair<const char*, std::string_view> members[] = {
      {"blame", name_of(result.blame)},
      {"function", result.step},
      {"arguments", result.arguments},
      {"reproducer", result.reproducer},
      {"listing", result.listing},
      {"excuse", result.excuse},
      {"found", result.found ? name_of(*result.found) : ""}};
  for (const auto& [name, text] : members) {
    if (!text.empty()) made[name] = text;
  }
  return made;
}

// The data of the page: a case is [name, number of its outcome, seconds, whether it failed].
json page_data(const Report& report) {
  json data = to_json(report);
  json cases = json::array();
  json details = json::object();
  for (const CaseRecord& record : report.records) {
    const CaseResult& result = record.result;
    cases.push_back({record.name, static_cast<int>(result.outcome), record.seconds,
                     is_failure(result) ? 1 : 0});
    if (result.outcome == Outcome::kPass || details.size() >= kMostDetails) continue;
    details[record.name] = details_of(result);
  }
  data["cases"] = std::move(cases);
  data["details"] = std::move(details);
  for (size_t i = 0; i < kOutcomeCount; ++i) {
    data["outcomes"].push_back(name_of(static_cast<Outcome>(i)));
  }
  for (const ElementTypeInfo& type : element_types()) data["types"].push_back(type.name);
  return data;
}

// JSON within a script element, which "</" would end and "<!--" would confuse.
std::string script_text(const json& data) {
  const std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string to_html(const Report& report) {
  constexpr std::string_view kPlace = "@DATA@";
  std::string page(embedded_file("report/page.html"));
  const size_t place = page.find(kPlace);
  if (place != std::string::npos)
    page.replace(place, kPlace.size(), script_text(page_data(report)));
  return page;
}

}  // namespace tenon::conformance
