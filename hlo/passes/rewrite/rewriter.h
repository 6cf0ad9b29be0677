// The driver of rewrite rules: applies them until none matches.
#pragma once

#include <string>
#include <vector>

#include "hlo/passes/rewrite/rule.h"

namespace tenon::hlo::rewrite {

/// Statistics of the driver; several runs accumulate.
struct Statistics {
  std::vector<int64_t> hits;  ///< Number of applications of each of all_rules().
  int64_t visited = 0;        ///< Number of visited instructions.
  bool is_exhausted = false;  ///< The budget ended before the rules did.

  int64_t total() const;
};

struct Options {
  /// Names of disabled rules.
  std::vector<std::string> disabled;
  /// Rules that may change results more than this are not applied.
  Exactness exactness = Exactness::kEveryBit;
  /// Whether late rules (Rule::is_late) are applied too.
  bool late = true;
  /// The maximum number of applications, per instruction of the Module.
  int64_t budget = 8;
  /// Added to, if not null.
  Statistics* statistics = nullptr;
};

/// Applies rules to every instruction, in order, and again to those whose operands changed, until
/// no rule matches or the budget is spent. Returns true if anything changed. If several rules match
/// an op, the first of all_rules() is applied. The same Module gives the same result on every
/// platform. Errors: a rule in `disabled` is unknown; a rule built ops that do not verify.
Result<bool> apply_rules(Module& module, const Options& options = {});

}  // namespace tenon::hlo::rewrite
