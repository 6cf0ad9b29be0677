// Generates docs/rewrites.md from the tables.
#pragma once

#include <string>

#include "hlo/passes/rewrite/rewriter.h"

namespace tenon::hlo::rewrite {

/// The page: every rule with its reason, an example and its hits in `programs`; then the non-rules.
std::string rules_documentation(const Statistics& programs);

}  // namespace tenon::hlo::rewrite
