#include "core/base/process/environment.h"

#include <charconv>
#include <cstdlib>

namespace tenon {

std::string environment_or(const char* name, std::string_view otherwise) {
  const char* const value = std::getenv(name);
  return std::string(value == nullptr || *value == '\0' ? otherwise : value);
}

Result<int64_t> environment_number(const char* name, int64_t otherwise, SettingRange range,
                                   std::string_view expected) {
  const std::string text = environment_or(name, "");
  if (text.empty()) return otherwise;
  const char* const end = text.data() + text.size();
  int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && at == end && number >= range.least && number <= range.most) {
    return number;
  }
  if (range.most == SettingRange{}.most) {
    return invalid_argument("{} is '{}', expected {} from {} on", name, text, expected,
                            range.least);
  }
  return invalid_argument("{} is '{}', expected {} of {} to {}", name, text, expected, range.least,
                          range.most);
}

bool environment_lists(const char* name, std::string_view word) {
  const std::string list = fmt::format(",{},", environment_or(name, ""));
  return list.find(fmt::format(",{},", word)) != std::string::npos;
}

}  // namespace tenon
