// The driver of rewrite rules: applies them until none matches.
#pragma once

#include <string>
#include <vector>

#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {

/// Statistics of the driver; counts of several runs add up.
struct Statistics {
  std::vector<int64_t> hits;  ///< Times that each of all_rules() was applied.
  int64_t visited = 0;        ///< Instructions that were looked at.
  bool is_exhausted = false;  ///< The budget ended before the rules did.

  int64_t total() const;
};

struct Options {
  /// Names of rules that are not applied.
  std::vector<std::string> disabled;
  /// Rules that may change more than this are not applied.
  Exactness exactness = Exactness::kEveryBit;
  /// Rules that may be applied, for each instruction of the Module.
  int64_t budget = 8;
  /// Added to, if not null.
  Statistics* statistics = nullptr;
};

/// Applies rules to every instruction, in order, and again to those whose operands changed, until
/// no rule matches or the budget is spent; true if anything changed. Of several rules that match an
/// op the first of all_rules() is applied. The same Module gives the same result everywhere.
/// Errors: a rule of `disabled` is unknown; a rule built something that does not verify.
Result<bool> apply_rules(Module& module, const Options& options = {});

}  // namespace tenon::hlo::rewrite
