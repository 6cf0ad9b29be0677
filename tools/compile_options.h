// Rewrite rules and tuning parameters: options that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>

#include "hlo/lower/tuning_parameters.h"
#include "hlo/passes/rewrite/rewriter.h"

namespace tenon::tools {

/// --disable-rule
void add_rule_options(CLI::App& command, hlo::rewrite::Options& options);

/// Prints the applied rules, most frequent first.
void print_rule_hits(std::FILE* stream, const hlo::rewrite::Statistics& statistics);

/// --tune NAME=VALUE
void add_tuning_options(CLI::App& command, std::vector<std::string>& entries);
/// Sets the given parameters. Errors: an unknown parameter, or an illegal value.
Status set_tuning(const std::vector<std::string>& entries, hlo::lower::TuningParameters& tuning);

}  // namespace tenon::tools
