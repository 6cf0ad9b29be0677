// Which cases a run takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/compare/pattern.h"
#include "conformance/terms/profile.h"

namespace tenon::conformance {

struct Selection {
  /// Names with '*' (any text, '/' included) and '?'; a case is taken if one matches. Empty: all.
  std::vector<std::string> patterns;
  /// Cases that match one of these are left out.
  std::vector<std::string> excluded;
  Tier tier = Tier::kFull;
  /// The target's; cases that need more are left out.
  CaseNeeds has = CaseNeeds::kPlugin;
  /// Cases that are not in it are left out.
  std::optional<Profile> profile;
  /// Every `shards`-th case, from `shard` on, of those that match.
  size_t shard = 0;
  size_t shards = 1;
};

/// "1/4": the first of four. Errors: another form, or a number out of range.
Status parse_shard(std::string_view text, Selection& selection);
/// "smoke", "quick", "full" or "extended".
Result<Tier> tier_from_name(std::string_view name);

/// Indices of the selected cases, in order.
std::vector<size_t> select(const std::vector<ConformanceCase>& cases, const Selection& selection);

}  // namespace tenon::conformance
