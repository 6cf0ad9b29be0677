#include "conformance/terms/profile.h"

#include <algorithm>
#include <ranges>
#include <sstream>

#include "conformance/compare/pattern.h"
#include "conformance/embedded_files.h"
#include "core/base/file.h"

namespace tenon::conformance {
namespace {

// The line without its comment and the blanks around it.
std::string_view content_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
}

// The words of a line, for a line that begins with the word `first`.
std::vector<std::string> words_behind(std::string_view first, std::string_view line) {
  std::istringstream words((std::string(line)));
  std::string word;
  std::vector<std::string> rest;
  if (!(words >> word) || word != first) return rest;
  while (words >> word) rest.push_back(word);
  return rest;
}

// Whether a part of the name is the type, or a conversion from or to it: "f32", "to_f32",
// "f32_to_s8".
bool mentions(std::string_view case_name, std::string_view type) {
  constexpr std::string_view kTo = "to_";
  for (const auto part : std::views::split(case_name, '/')) {
    const std::string_view word(part.begin(), part.end());
    if (word == type) return true;
    const size_t to = word.find(kTo);
    if (to == std::string_view::npos || (to > 0 && word[to - 1] != '_')) continue;
    if (word.substr(to + kTo.size()) == type) return true;
    if (to > 0 && word.substr(0, to - 1) == type) return true;
  }
  return false;
}

}  // namespace

bool Profile::has(const std::string& case_name) const {
  const auto matches_case = [&](const std::string& pattern) { return matches(pattern, case_name); };
  return std::ranges::any_of(patterns, matches_case) &&
         std::ranges::none_of(excluded, matches_case) &&
         std::ranges::none_of(without,
                              [&](const std::string& type) { return mentions(case_name, type); });
}

Result<Profile> parse_profile(std::string name, std::string_view text) {
  Profile profile;
  profile.name = std::move(name);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = content_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (const auto types = words_behind("without", line); !types.empty()) {
      profile.without.insert(profile.without.end(), types.begin(), types.end());
    } else if (line[0] == '-') {
      profile.excluded.emplace_back(content_of(line.substr(1)));
    } else {
      profile.patterns.emplace_back(line);
    }
  }
  if (profile.patterns.empty()) {
    return invalid_argument("the profile '{}' has no pattern", profile.name);
  }
  return profile;
}

const std::vector<std::string_view>& profile_names() {
  static const std::vector<std::string_view> names = {"minimal", "inference", "training", "full"};
  return names;
}

Result<Profile> builtin_profile(std::string_view name) {
  if (std::ranges::count(profile_names(), name) == 0) {
    return not_found("there is no profile '{}': expected {}", name,
                     fmt::join(profile_names(), ", "));
  }
  return parse_profile(std::string(name), embedded_file(fmt::format("profiles/{}.txt", name)));
}

Result<Profile> find_profile(const std::string& name_or_path) {
  auto known = builtin_profile(name_or_path);
  if (known) return known;
  const auto text = read_file(name_or_path);
  if (!text) {
    return not_found("{}, or a file: {}", known.error().message(), text.error().message());
  }
  return parse_profile(name_or_path, *text);
}

}  // namespace tenon::conformance
