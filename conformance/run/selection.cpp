#include "conformance/run/selection.h"

#include <algorithm>
#include <charconv>

namespace tenon::conformance {
namespace {

bool match_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return matches(pattern, name); });
}

bool parse_number(std::string_view text, size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Status parse_shard(std::string_view text, Selection& selection) {
  const size_t slash = text.find('/');
  size_t shard = 0;
  size_t shards = 0;
  if (slash == std::string_view::npos || !parse_number(text.substr(0, slash), shard) ||
      !parse_number(text.substr(slash + 1), shards) || shard < 1 || shard > shards) {
    return invalid_argument("'{}' is no shard: expected I/N with 1 <= I <= N, as in 1/4", text);
  }
  selection.shard = shard - 1;
  selection.shards = shards;
  return {};
}

Result<Tier> tier_from_name(std::string_view name) {
  if (name == "smoke") return Tier::kSmoke;
  if (name == "quick") return Tier::kQuick;
  if (name == "full") return Tier::kFull;
  if (name == "extended") return Tier::kExtended;
  return invalid_argument("'{}' is no tier: expected smoke, quick, full or extended", name);
}

std::vector<size_t> select(const std::vector<ConformanceCase>& cases, const Selection& selection) {
  std::vector<size_t> found;
  size_t matching = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const ConformanceCase& each = cases[i];
    if (each.tier > selection.tier) continue;
    if (each.needs > selection.has) continue;
    if (!selection.patterns.empty() && !match_any(selection.patterns, each.name)) continue;
    if (match_any(selection.excluded, each.name)) continue;
    if (selection.profile && !selection.profile->has(each.name)) continue;
    if (matching++ % selection.shards == selection.shard) found.push_back(i);
  }
  return found;
}

}  // namespace tenon::conformance
