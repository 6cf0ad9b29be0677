// Which rewrite rules: options that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>

#include "hlo/passes/rewrite/rewriter.h"

namespace tenon::tools {

/// --disable-rule
void add_rule_options(CLI::App& command, hlo::rewrite::Options& options);

/// Prints the rules that were applied, the most frequent first.
void print_rule_hits(std::FILE* stream, const hlo::rewrite::Statistics& statistics);

}  // namespace tenon::tools
