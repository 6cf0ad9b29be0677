#include "conformance/terms/waivers.h"

#include <charconv>

#include "conformance/terms/json_file.h"

namespace tenon::conformance {
namespace {

template <class Number>
bool parse_digits(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<Date> date_from_text(std::string_view text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  const bool has_form = text.size() == 10 && text[4] == '-' && text[7] == '-' &&
                        parse_digits(text.substr(0, 4), year) &&
                        parse_digits(text.substr(5, 2), month) &&
                        parse_digits(text.substr(8, 2), day);
  const Date date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (has_form && date.ok()) return date;
  return invalid_argument("'{}' is no date: expected YYYY-MM-DD", text);
}

std::string to_string(const Date& date) {
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

Date today() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()); }

Result<std::vector<Waiver>> waivers_from_json(const nlohmann::json& document) {
  if (!document.is_array()) return invalid_argument("/: expected a list of waivers");
  std::vector<Waiver> list;
  for (size_t i = 0; i < document.size(); ++i) {
    MemberReader reader(document[i], fmt::format("/{}", i));
    Waiver read{
        reader.text("cases"), reader.text("reason"), reader.text("owner"), reader.text("link"), {}};
    if (const std::string text = reader.text("expires"); !text.empty()) {
      const auto date = date_from_text(text);
      date ? read.expires = *date : (reader.fail("expires", date.error().message()), Date());
    }
    TENON_TRY(reader.finish());
    list.push_back(std::move(read));
  }
  return list;
}

Result<std::vector<Waiver>> read_waivers(const std::string& path) {
  TENON_ASSIGN(const nlohmann::json document, read_json_file(path));
  auto read = waivers_from_json(document);
  if (!read) return Error(std::move(read.error()).with_context(path));
  return read;
}

nlohmann::json to_json(const std::vector<Waiver>& waivers) {
  nlohmann::json list = nlohmann::json::array();
  for (const Waiver& each : waivers) {
    list.push_back({{"cases", each.cases},
                    {"reason", each.reason},
                    {"owner", each.owner},
                    {"link", each.link},
                    {"expires", to_string(each.expires)}});
  }
  return list;
}

Status check_expiry(const std::vector<Waiver>& waivers, const Date& date) {
  std::string expired;
  for (const Waiver& each : waivers) {
    if (each.expires >= date) continue;
    expired += fmt::format("{}the waiver of '{}' ({}) expired on {}", expired.empty() ? "" : "; ",
                           each.cases, each.owner, to_string(each.expires));
  }
  if (expired.empty()) return {};
  return failed_precondition("{}", expired);
}

}  // namespace tenon::conformance
